//! Decides over one object, on what the server says about it and its owners at this moment. Pure.

use super::graph::{Blocking, Graph, Node, Phase, Propagation, Uid};

/// How an owner of an object stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is there and stays.
    Solid,
    /// It is not there, and its uid will not come back.
    Absent,
    /// It is there and waits for its dependents to go.
    Waiting,
    /// Nobody can say: its kind is not served.
    Unknown,
    /// It cannot be an owner: it is in a namespace, and the dependent is in none.
    Impossible,
}

/// What to do about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Nothing now; an owner is of a kind that may be served later, or has not been seen by a watch.
    LookAgain,
    /// Take these owners out of its references.
    Forget(Vec<Uid>),
    /// Let its references hold up nobody, then delete it: it is in a circle.
    UnblockAndDelete,
    Delete(Propagation),
}

/// How an owner stands, from what the server has under its name.
pub(crate) fn standing(uid: &Uid, found: Option<&Node>) -> Standing {
    match found {
        Some(owner) if owner.identity.uid == *uid => match owner.phase {
            Phase::WaitingForDependents => Standing::Waiting,
            _ => Standing::Solid,
        },
        _ => Standing::Absent,
    }
}

/// What to do about an object as the server has it now, given how each of its owners stands.
pub(crate) fn decide(latest: &Node, owners: &[Standing], graph: &Graph) -> Action {
    let has = |standing: Standing| owners.contains(&standing);
    if latest.owners.is_empty() || latest.phase != Phase::Alive {
        return Action::Nothing;
    }
    if has(Standing::Unknown) {
        return Action::LookAgain;
    }
    // Who made a reference that cannot be meant something by it: nothing is deleted for a mistake.
    if has(Standing::Solid) || has(Standing::Impossible) {
        return keep(latest, owners, graph);
    }
    let uid = &latest.identity.uid;
    if has(Standing::Waiting) && graph.dependents_of(uid).next().is_some() {
        let blocks = latest.owners.iter().any(|r| r.blocking == Blocking::Yes);
        return if graph.has_waiting_dependent(uid) && blocks {
            Action::UnblockAndDelete
        } else {
            Action::Delete(Propagation::Foreground)
        };
    }
    Action::Delete(latest.on_delete)
}

/// An object with an owner stays. Other references are dropped: an owner that waits would wait for ever.
fn keep(latest: &Node, owners: &[Standing], graph: &Graph) -> Action {
    let pairs = || latest.owners.iter().zip(owners);
    let is_lost = |standing: Standing| matches!(standing, Standing::Absent | Standing::Waiting);
    let lost = pairs().filter(|(_, standing)| is_lost(**standing));
    let lost: Vec<Uid> = lost.map(|(reference, _)| reference.uid.clone()).collect();
    if !lost.is_empty() {
        return Action::Forget(lost);
    }
    // An owner that came and went between two watches would never be missed.
    let unseen = pairs().any(|(reference, standing)| {
        *standing == Standing::Solid && graph.node(&reference.uid).is_none()
    });
    if unseen {
        Action::LookAgain
    } else {
        Action::Nothing
    }
}
