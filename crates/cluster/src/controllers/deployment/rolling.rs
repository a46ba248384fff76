//! The arithmetic of a rolling update: by how much the new set may grow and the old ones shrink. Pure numbers.

use super::bounds::Bounds;

/// What a set shall have and what serves of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    desired: i32,
    available: i32,
}

impl Size {
    /// A set of `desired` pods of which `available` serve. A set that was just asked to shrink may still report pods
    /// that it is about to delete; those do not count.
    pub(crate) fn new(desired: i32, available: i32) -> Self {
        Self {
            desired,
            available: available.clamp(0, desired.max(0)),
        }
    }
}

/// The size that the new set should have, given the old ones.
pub(crate) fn new_size(bounds: &Bounds, new: i32, old: impl IntoIterator<Item = i32>) -> i32 {
    if new >= bounds.replicas {
        return bounds.replicas;
    }
    let total = old.into_iter().map(i64::from).sum::<i64>() + i64::from(new);
    let room = i64::from(bounds.most()) - total;
    let missing = i64::from(bounds.replicas - new);
    new + narrow(room.clamp(0, missing))
}

/// The sizes that the old sets should have; `old` is in the order of their creation.
///
/// Pods that do not serve go first, since nobody misses them; then as many as serve beyond the least that must.
/// Pods of the new set that do not serve yet hold back as many old ones.
pub(crate) fn old_sizes(bounds: &Bounds, new: Size, old: &[Size]) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|size| size.desired).collect();
    let total = sizes.iter().copied().map(i64::from).sum::<i64>() + i64::from(new.desired);
    let waiting = i64::from(new.desired - new.available);
    let least = i64::from(bounds.least_available());
    let mut removable = total - least - waiting;
    if removable <= 0 {
        return sizes;
    }
    for (size, set) in sizes.iter_mut().zip(old) {
        let idle = i64::from(set.desired - set.available);
        take(size, idle, &mut removable);
    }
    let available = old
        .iter()
        .chain([&new])
        .map(|size| i64::from(size.available));
    let mut spare = available.sum::<i64>() - least;
    for size in &mut sizes {
        take(size, i64::from(*size), &mut spare);
    }
    sizes
}

/// Takes up to `most` pods from a set, as far as the budget goes.
fn take(size: &mut i32, most: i64, budget: &mut i64) {
    let taken = most.min(*budget).max(0);
    *size -= narrow(taken);
    *budget -= taken;
}

fn narrow(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
