//! Where a volume is on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::PersistentVolume;
use kubewright_cluster::node::runtime::{Medium, MountError, PodVolume, VolumeFile, VolumeSource};

use super::ownership::Owners;
use super::{atomic, host};
use crate::helper::message::Writable;
use crate::state::State;

/// Where volumes are that the cluster itself has made for claims; the path is of no machine.
const PROVISIONED: &str = "/simulated/";

/// A volume that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file or directory of this machine.
    pub(crate) path: PathBuf,
    /// Whether containers may write to it at all.
    pub(crate) writable: Writable,
    /// How many bytes may be in it; without one there is no limit.
    pub(crate) limit: Option<u64>,
    /// The files that were written to it, if it consists of files.
    files: Option<Vec<VolumeFile>>,
}

impl Place {
    /// Whether it consists of files that may change.
    pub(crate) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    fn writable(path: PathBuf) -> Self {
        Self {
            path,
            writable: Writable::Yes,
            limit: None,
            files: None,
        }
    }
}

/// Makes a volume of a pod, or brings it up to date. `before` is where it was.
///
/// # Errors
/// Why it cannot be made, with the kubelet's text where it has one.
pub(crate) fn prepare(
    state: &State,
    uid: &str,
    volume: &PodVolume,
    owners: &Owners,
    before: Option<&Place>,
) -> Result<Place, MountError> {
    let failed = |why: &dyn std::fmt::Display| MountError::new(&volume.name, why);
    let own = state.pods().join(uid).join("volumes").join(&volume.name);
    match &volume.source {
        VolumeSource::Files(files) => {
            if let Some(before) = before
                && before.files.as_ref() == Some(files)
            {
                return Ok(before.clone());
            }
            open_directory(&own, 0o755).map_err(|error| failed(&error))?;
            atomic::write(&own, files, owners).map_err(|error| failed(&error))?;
            Ok(Place {
                path: own,
                writable: Writable::No,
                limit: None,
                files: Some(files.clone()),
            })
        }
        VolumeSource::Empty { medium, limit } => {
            let path = match medium {
                Medium::Disk => own,
                Medium::Memory => state.memory().join(uid).join(&volume.name),
            };
            let made = open_directory(&path, 0o777).and_then(|()| owners.give_directories(&path));
            made.map_err(|error| failed(&error))?;
            Ok(Place {
                limit: *limit,
                ..Place::writable(path)
            })
        }
        VolumeSource::Host { path, kind } => {
            let path = PathBuf::from(path);
            host::check(&path, kind).map_err(|why| failed(&why))?;
            Ok(Place::writable(path))
        }
        VolumeSource::Claim(found) => {
            let path = claimed(state, found).map_err(|why| failed(&why))?;
            if path.starts_with(state.claims()) {
                let given = owners.give_directories(&path);
                given.map_err(|error| failed(&error))?;
            }
            Ok(Place::writable(path))
        }
        VolumeSource::Other(kind) => Err(failed(&format!(
            "{kind} volumes cannot be mounted where containers are processes"
        ))),
        _ => Err(failed(&"a volume of an unknown kind")),
    }
}

/// Why a persistent volume is not a directory here.
#[derive(Debug, thiserror::Error)]
enum ClaimError {
    #[error("block volumes need a device, which processes do not get")]
    Block,
    #[error("path {0:?} does not exist")]
    Missing(String),
    #[error("the persistent volume {0:?} is not a path of this machine (hostPath, local)")]
    NotAPath(String),
    #[error("{0:?} is not the name of a directory")]
    Name(String),
    #[error(transparent)]
    Host(#[from] host::HostPathError),
    #[error("its directory cannot be made: {0}")]
    Make(std::io::Error),
}

/// The directory of a persistent volume.
fn claimed(state: &State, volume: &PersistentVolume) -> Result<PathBuf, ClaimError> {
    let name = volume.metadata.name.as_deref().unwrap_or("");
    let spec = volume.spec.clone().unwrap_or_default();
    if spec.volume_mode.as_deref() == Some("Block") {
        return Err(ClaimError::Block);
    }
    if let Some(local) = spec.local {
        let path = PathBuf::from(&local.path);
        let found = fs::metadata(&path);
        return match found {
            Ok(_) => Ok(path),
            Err(_) => Err(ClaimError::Missing(local.path)),
        };
    }
    let Some(source) = spec.host_path else {
        return Err(ClaimError::NotAPath(name.to_owned()));
    };
    if !source.path.starts_with(PROVISIONED) {
        let path = PathBuf::from(&source.path);
        host::check(&path, source.type_.as_deref().unwrap_or(""))?;
        return Ok(path);
    }
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(ClaimError::Name(name.to_owned()));
    }
    let path = state.claims().join(name);
    open_directory(&path, 0o777).map_err(ClaimError::Make)?;
    Ok(path)
}

/// A directory with these permissions, whatever the mask says. One that is there keeps its own.
fn open_directory(path: &Path, mode: u32) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
