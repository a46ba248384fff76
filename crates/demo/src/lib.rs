//! CloudManager: an application of three parts, brought up one after the other.
//!
//! `front` and `identity` are Deployments, `db` a StatefulSet with a volume and a password in a Secret. Each part waits until
//! the one before has a ready majority. A part that is renamed is made anew and the old one deleted; everything belongs to
//! the CloudManager and goes with it.

mod api;
mod desired;
mod reconcile;

pub use api::{CloudManager, CloudManagerSpec, CloudManagerStatus, Phase};
pub use reconcile::{CloudManagers, controller};

/// The sample, as YAML.
pub const SAMPLE: &str = include_str!("../sample.yaml");

/// The sample.
///
/// # Errors
/// When the file is no CloudManager.
pub fn sample() -> anyhow::Result<CloudManager> {
    Ok(serde_saphyr::from_str(SAMPLE)?)
}
