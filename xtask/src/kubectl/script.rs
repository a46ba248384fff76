//! The script: what every kubectl has to get right.

mod access;
mod alive;
mod collection;
mod commands;
mod config_maps;
mod deletion;
mod deployments;
mod discovery;
mod fruit;
mod kinds;
mod protobuf;
mod strict;
mod waiting;

use super::step::Group;

/// The groups that were chosen, in the order in which they are run.
pub(crate) fn groups(only: Option<&str>) -> Vec<Group> {
    let mut all = vec![
        discovery::group(),
        config_maps::group(),
        deployments::group(),
        kinds::group(),
        waiting::group(),
        deletion::group(),
        fruit::group(),
        protobuf::group(),
        access::group(),
        collection::group(),
        alive::group(),
        commands::group(),
        strict::group(),
    ];
    all.retain(|group| only.is_none_or(|pattern| is_meant(group, pattern)));
    all
}

/// A group is run whole, because its steps rely on those before them.
fn is_meant(group: &Group, pattern: &str) -> bool {
    group.name == pattern
        || group
            .steps
            .iter()
            .any(|step| step.title().contains(pattern))
}
