//! The update of a DaemonSet, node by node. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::eligibility::Fit;
use super::plan::{Moves, Place, View};
use crate::pods::is_terminating;

/// Moves the update on: without surge by deleting old pods, with surge by adding new ones beside them.
pub(super) fn roll(view: &View<'_>, moves: &mut Moves) {
    let desired = view.desired();
    match (view.surge(desired), view.unavailable(desired)) {
        // Validation lets nobody ask for neither, but a percentage of few nodes may round to zero.
        (0, 0) => replace(view, 1, moves),
        (0, unavailable) => replace(view, unavailable, moves),
        (surge, _) => add(view, surge, desired, moves),
    }
}

/// The new and the old pod of a node.
struct Pair<'a> {
    new: Option<&'a Arc<Pod>>,
    old: Option<&'a Arc<Pod>>,
}

/// The pods that stay on a node; none where there are several of a kind, which has to be corrected first.
fn pair<'a>(view: &View<'_>, place: &'a Place) -> Option<Pair<'a>> {
    let mut pair = Pair {
        new: None,
        old: None,
    };
    for pod in place.pods.iter().filter(|pod| !is_terminating(pod)) {
        let side = if view.is_updated(pod) {
            &mut pair.new
        } else {
            &mut pair.old
        };
        if side.replace(pod).is_some() {
            return None;
        }
    }
    Some(pair)
}

/// The nodes that count: those with pods, and those that should have one.
fn places<'a>(view: &'a View<'_>) -> impl Iterator<Item = (&'a String, &'a Place)> {
    let counts = |place: &Place| !place.pods.is_empty() || place.fit == Some(Fit::Run);
    view.nodes.iter().filter(move |(_, place)| counts(place))
}

/// Deletes old pods so that at most `limit` nodes are without one that serves. Old pods that do not serve go at once:
/// nobody misses them.
fn replace(view: &View<'_>, limit: i32, moves: &mut Moves) {
    let mut unavailable = 0;
    let mut candidates = Vec::new();
    for (_, place) in places(view) {
        match pair(view, place) {
            Some(Pair {
                new: Some(new),
                old: None,
            }) if view.is_available(new) => {}
            Some(Pair {
                new: None,
                old: Some(old),
            }) if view.is_available(old) => candidates.push(old),
            Some(Pair {
                new: None,
                old: Some(old),
            }) => {
                unavailable += 1;
                moves.drop(old);
            }
            _ => unavailable += 1,
        }
    }
    let budget = usize::try_from(limit.saturating_sub(unavailable)).unwrap_or_default();
    candidates
        .into_iter()
        .take(budget)
        .for_each(|old| moves.drop(old));
}

/// Adds new pods beside old ones on at most `surge` nodes at a time, and deletes the old ones whose successor serves.
/// On nodes where no pod should start any more the old one goes once enough others serve.
fn add(view: &View<'_>, surge: i32, desired: i32, moves: &mut Moves) {
    let (mut surging, mut available) = (0, 0);
    let (mut candidates, mut unwanted) = (Vec::new(), Vec::new());
    for (name, place) in places(view) {
        let Some(Pair { new, old }) = pair(view, place) else {
            surging += 1;
            continue;
        };
        available += i32::from(old.or(new).is_some_and(|pod| view.is_available(pod)));
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) => match (place.fit, view.is_available(old)) {
                (Some(Fit::Run), true) => candidates.push(name.clone()),
                (Some(Fit::Run), false) => moves.start.push(name.clone()),
                (_, true) => unwanted.push(old),
                (_, false) => moves.drop(old),
            },
            (Some(new), Some(old)) if view.is_available(new) => moves.drop(old),
            (Some(_), Some(_)) => surging += 1,
        }
    }
    let count = |count: i32| usize::try_from(count).unwrap_or_default();
    unwanted
        .into_iter()
        .take(count(available - desired))
        .for_each(|old| moves.drop(old));
    moves
        .start
        .extend(candidates.into_iter().take(count(surge - surging)));
}
