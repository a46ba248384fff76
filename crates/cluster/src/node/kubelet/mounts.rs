//! The volumes of a pod for a runtime that mounts them: which directory or which files each of them is.

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod, Volume};
use kubewright_schema::quantity::{Quantity, QuantityError};

use super::downward::Place;
use super::sources::Sources;
use super::volume_error::VolumeError;
use super::volumes::{claimed_volume, content, only_user};
use crate::node::runtime::tokens::Minted;
use crate::node::runtime::{Medium, MountError, PodVolume, VolumeFile, VolumeSource};

/// The volumes of a pod with everything resolved.
///
/// # Errors
/// Which volume cannot be made, and why.
pub(crate) fn resolved(
    pod: &Pod,
    place: &Place,
    sources: &dyn Sources,
    minted: &Minted,
) -> Result<Vec<PodVolume>, MountError> {
    let spec = pod.spec.iter();
    let mut all = Vec::new();
    for volume in spec.flat_map(|spec| spec.volumes.iter().flatten()) {
        let source = resolve(volume, pod, place, sources, minted);
        all.push(PodVolume {
            name: volume.name.clone(),
            source: source.map_err(|why| MountError::new(&volume.name, why))?,
        });
    }
    Ok(all)
}

fn resolve(
    volume: &Volume,
    pod: &Pod,
    place: &Place,
    sources: &dyn Sources,
    minted: &Minted,
) -> Result<VolumeSource, VolumeError> {
    if let Some(source) = &volume.empty_dir {
        return Ok(empty(source)?);
    }
    if let Some(source) = &volume.host_path {
        return Ok(VolumeSource::Host {
            path: source.path.clone(),
            kind: source.type_.clone().unwrap_or_default(),
        });
    }
    if let Some(found) = claimed_volume(volume, pod, sources)? {
        return Ok(VolumeSource::Claim(found));
    }
    let has_files = volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some();
    if !has_files {
        return Ok(VolumeSource::Other(other_kind(volume)));
    }
    let owner = volume.projected.as_ref().and_then(|_| only_user(pod));
    let is_owned = |path: &str| {
        let sources = volume
            .projected
            .iter()
            .flat_map(|p| p.sources.iter().flatten());
        let mut owned = sources.filter_map(|source| {
            let token = source
                .service_account_token
                .as_ref()
                .map(|token| &token.path);
            let bundle = source.cluster_trust_bundle.as_ref();
            token.or(bundle.map(|bundle| &bundle.path))
        });
        owned.any(|owned| owned == path)
    };
    let files = content(volume, pod, place, sources, minted)?;
    let files = files.into_iter().map(|(path, content, mode)| VolumeFile {
        owner: owner.filter(|_| is_owned(&path)),
        path,
        content,
        mode: u32::try_from(mode).unwrap_or(0o644),
    });
    Ok(VolumeSource::Files(files.collect()))
}

fn empty(source: &EmptyDirVolumeSource) -> Result<VolumeSource, QuantityError> {
    let limit = source.size_limit.as_ref();
    let limit = limit.map(|limit| Quantity::parse(&limit.0)).transpose()?;
    let limit = limit.and_then(|limit| u64::try_from(limit.value()?).ok());
    let medium = if source.medium.as_deref().unwrap_or("").is_empty() {
        Medium::Disk
    } else {
        Medium::Memory
    };
    Ok(VolumeSource::Empty {
        medium,
        limit: limit.filter(|bytes| *bytes > 0),
    })
}

/// The kind of a volume as the pod names it.
fn other_kind(volume: &Volume) -> String {
    let value = serde_json::to_value(volume).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    let mut kinds = fields
        .map(|(name, _)| name.clone())
        .filter(|name| name != "name");
    kinds.next().unwrap_or_default()
}
