//! Scales several sets at once so that each keeps its share. Pure numbers.
//!
//! A Deployment that is scaled in the middle of a rollout must not hasten it: were all growth given to the new set, a
//! bad template would spread with it.

use super::bounds::Bounds;

/// A set that has pods, as the arithmetic sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// How many pods it shall have.
    pub(crate) desired: i32,
    /// The most pods that the Deployment might have when the set was last scaled, if it says so.
    pub(crate) most_before: Option<i32>,
}

/// The sizes of all sets after scaling; `sets` is in the order of their creation, `running` the pods that the
/// Deployment last reported.
pub(crate) fn sizes(bounds: &Bounds, sets: &[Share], running: i32) -> Vec<i32> {
    let mut sizes: Vec<i32> = sets.iter().map(|set| set.desired).collect();
    let total = sizes.iter().copied().map(i64::from).sum::<i64>();
    let allowed = match bounds.replicas {
        0 => 0,
        _ => i64::from(bounds.most()),
    };
    let missing = allowed - total;
    let mut left = missing;
    let order = order(sets, missing);
    for &at in &order {
        let change = clip(fraction(bounds, sets[at], running), missing, left);
        sizes[at] = widen(sizes[at], change);
        left -= change;
    }
    if let Some(&largest) = order.first() {
        sizes[largest] = widen(sizes[largest], left);
    }
    sizes
}

/// Largest first. Of equal ones the newer grows first and the older shrinks first.
fn order(sets: &[Share], missing: i64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sets.len()).collect();
    if missing > 0 {
        order.reverse();
    }
    order.sort_by_key(|&at| std::cmp::Reverse(sets[at].desired));
    order
}

/// By how much a set would change to keep its part of the whole.
fn fraction(bounds: &Bounds, set: Share, running: i32) -> i64 {
    if bounds.replicas == 0 {
        return -i64::from(set.desired);
    }
    let before = set.most_before.filter(|most| *most > 0).unwrap_or(running);
    if before <= 0 {
        return 0;
    }
    let size = f64::from(set.desired) * f64::from(bounds.most()) / f64::from(before);
    // Within the range of i64: three 32-bit numbers, one of which divides.
    size.round() as i64 - i64::from(set.desired)
}

/// No more than is left of what is missing.
fn clip(change: i64, missing: i64, left: i64) -> i64 {
    match (missing.signum(), left) {
        (0, _) | (_, 0) => 0,
        (1, left) => change.min(left),
        (_, left) => change.max(left),
    }
}

fn widen(size: i32, change: i64) -> i32 {
    let size = (i64::from(size) + change).max(0);
    i32::try_from(size).unwrap_or(i32::MAX)
}
