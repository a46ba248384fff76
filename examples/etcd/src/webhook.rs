//! What the API server asks: whether a cluster can be what somebody wants it to be.

use kubewright::webhook::{FieldError, FieldErrors};

use crate::api::{EtcdCluster, Role};
use crate::plan::majority;
use crate::version::Version;

/// Refuses changes that no operator could make safely. What has to hold of every cluster is in the schema.
///
/// # Errors
/// When something is wrong; all of it is reported at once.
#[kubewright::webhook(validating)]
pub fn validate(cluster: &EtcdCluster, old: Option<&EtcdCluster>) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::new();
    let Some(old) = old else {
        return errors.into_result();
    };
    let spec = &cluster.spec;
    if let Some(problem) = unsafe_shrink(spec.size, old) {
        errors.push(FieldError::invalid("spec.size", spec.size, &problem));
    }
    if let Some(problem) = unsupported_upgrade(&spec.version, old) {
        let version = spec.version.as_str();
        errors.push(FieldError::invalid("spec.version", version, &problem));
    }
    errors.into_result()
}

/// A cluster that is not well can lose members, but not so many that those which are left were never a quorum.
fn unsafe_shrink(size: i32, old: &EtcdCluster) -> Option<String> {
    let status = old.status.as_ref()?;
    let voters = status.members.iter().filter(|it| it.role != Role::Learner);
    let (healthy, away): (Vec<_>, Vec<_>) = voters.partition(|member| member.healthy);
    let quorum = majority(healthy.len() + away.len());
    let below = usize::try_from(size).is_ok_and(|size| size < quorum);
    if size >= old.spec.size || !below || away.is_empty() {
        return None;
    }
    let names: Vec<&str> = away.iter().map(|member| member.name.as_str()).collect();
    let names = names.join(", ");
    Some(format!(
        "is less than the quorum of {quorum} while members are not healthy: {names}"
    ))
}

fn unsupported_upgrade(version: &str, old: &EtcdCluster) -> Option<String> {
    let new: Version = version.parse().ok()?;
    let running = old
        .status
        .as_ref()
        .and_then(|status| status.version.as_deref());
    let running = running.unwrap_or(&old.spec.version);
    let from: Version = running.parse().ok()?;
    if new.to_string() == old.spec.version || from.may_become(new) {
        return None;
    }
    Some(format!(
        "cannot follow {from}: minor versions go up one at a time, and never back"
    ))
}
