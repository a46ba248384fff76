//! The volumes of a pod: what keeps them from being mounted, and the files that they put into containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{
    ClusterTrustBundleProjection, Container, DownwardAPIVolumeFile, KeyToPath, PersistentVolume,
    Pod, ProjectedVolumeSource, ServiceAccountTokenProjection, Volume, VolumeProjection,
};

use super::downward::{self, Place};
use super::environment::missing;
use super::sources::Sources;
use super::sub_path::sub_path;
use super::trust_bundles;
use super::volume_error::{ClaimProblem, UnusableClaim, VolumeError};
use crate::node::runtime::MountedFile;
use crate::node::runtime::tokens::{self, Minted};

/// Permissions of files when a volume does not say.
const MODE: i32 = 0o644;

/// Why a volume of a pod is not there yet: the volume, and the message of the event `FailedMount`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountFailure {
    pub(crate) volume: String,
    pub(crate) message: String,
}

/// A file of a volume: its path in it, its content and its permissions.
type File = (String, Bytes, i32);

/// What keeps the volumes of a pod from being mounted.
///
/// Mirrors `GenerateMountVolumeFunc` with the plugins `secret`, `configmap` and `projected`, and
/// `desiredStateOfWorldPopulator.createVolumeSpec` for claims.
pub(crate) fn failures(pod: &Pod, sources: &dyn Sources) -> Vec<MountFailure> {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    let failed = volumes.filter_map(|volume| {
        let made = content(volume, pod, &Place::default(), sources, &Minted::new());
        let message = match made {
            Err(why) => format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name),
            Ok(_) => {
                let why = claimed_volume(volume, pod, sources).err()?;
                let name = &volume.name;
                format!(
                    "Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[], failed to process \
                     volumes=[{name}]: {why}"
                )
            }
        };
        Some(MountFailure {
            volume: volume.name.clone(),
            message,
        })
    });
    failed.collect()
}

/// The persistent volume behind the claim of a volume; nothing when the volume has no claim.
///
/// # Errors
/// When the claim cannot be used.
pub(super) fn claimed_volume(
    volume: &Volume,
    pod: &Pod,
    sources: &dyn Sources,
) -> Result<Option<Arc<PersistentVolume>>, UnusableClaim> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    let Some(name) = claim_name(volume, pod) else {
        return Ok(None);
    };
    match bound_volume(namespace, &name, sources) {
        Ok(found) => Ok(Some(found)),
        Err(problem) => Err(UnusableClaim {
            namespace: namespace.to_owned(),
            name,
            problem,
        }),
    }
}

/// The persistent volume that a claim is bound to.
fn bound_volume(
    namespace: &str,
    name: &str,
    sources: &dyn Sources,
) -> Result<Arc<PersistentVolume>, ClaimProblem> {
    let claim = sources
        .claim(namespace, name)
        .ok_or_else(|| ClaimProblem::NotFound(name.to_owned()))?;
    let finalizers = claim.metadata.finalizers.iter().flatten();
    let protected = finalizers
        .into_iter()
        .any(|f| f == "kubernetes.io/pvc-protection");
    if claim.metadata.deletion_timestamp.is_some() && !protected {
        return Err(ClaimProblem::Deleted);
    }
    if claim.status.as_ref().and_then(|s| s.phase.as_deref()) != Some("Bound") {
        return Err(ClaimProblem::NotBound);
    }
    let bound = claim
        .spec
        .as_ref()
        .and_then(|s| s.volume_name.as_deref())
        .unwrap_or("");
    if bound.is_empty() {
        return Err(ClaimProblem::NoVolumeName);
    }
    let found = sources
        .volume(bound)
        .ok_or_else(|| ClaimProblem::NoVolume(bound.to_owned()))?;
    let reference = found.spec.as_ref().and_then(|s| s.claim_ref.as_ref());
    let reference = reference.ok_or_else(|| ClaimProblem::NoClaimRef(bound.to_owned()))?;
    let uid = |uid: &Option<String>| uid.clone().unwrap_or_default();
    let (theirs, ours) = (uid(&reference.uid), uid(&claim.metadata.uid));
    if theirs != ours {
        return Err(ClaimProblem::OtherClaim {
            volume: bound.to_owned(),
            found: theirs,
            expected: ours,
        });
    }
    Ok(found)
}

/// The files that volumes put into a container. What is missing is left out: the container starts when nothing is.
pub(crate) fn files(
    pod: &Pod,
    container: &Container,
    env: &[(String, String)],
    place: &Place,
    sources: &dyn Sources,
) -> Vec<MountedFile> {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    let by_name: BTreeMap<&str, &Volume> = volumes.map(|v| (v.name.as_str(), v)).collect();
    let mut files = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let Some(volume) = by_name.get(mount.name.as_str()) else {
            continue;
        };
        let content = content(volume, pod, place, sources, &Minted::new()).unwrap_or_default();
        let Ok(sub) = sub_path(mount, env) else {
            continue;
        };
        let root = mount.mount_path.trim_end_matches('/');
        for (path, content, mode) in content {
            let path = match sub.as_deref() {
                None => format!("{root}/{path}"),
                Some(sub) if sub == path => root.to_owned(),
                Some(sub) => match path.strip_prefix(&format!("{}/", sub.trim_end_matches('/'))) {
                    Some(rest) => format!("{root}/{rest}"),
                    None => continue,
                },
            };
            files.push(MountedFile {
                path,
                content,
                mode: u32::try_from(mode).unwrap_or(0o644),
            });
        }
    }
    files
}

/// What is in a volume, or why it cannot be made.
pub(super) fn content(
    volume: &Volume,
    pod: &Pod,
    place: &Place,
    sources: &dyn Sources,
    minted: &Minted,
) -> Result<Vec<File>, VolumeError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or("");
        let optional = source.optional == Some(true);
        let items = source.items.as_deref().unwrap_or_default();
        let mode = source.default_mode.unwrap_or(MODE);
        return secret(sources, (namespace, name), items, mode, optional);
    }
    if let Some(source) = &volume.config_map {
        let optional = source.optional == Some(true);
        let items = source.items.as_deref().unwrap_or_default();
        let mode = source.default_mode.unwrap_or(MODE);
        return config_map(sources, (namespace, &source.name), items, mode, optional);
    }
    if let Some(source) = &volume.downward_api {
        let items = source.items.as_deref().unwrap_or_default();
        return Ok(downward_files(
            items,
            pod,
            place,
            source.default_mode.unwrap_or(MODE),
        ));
    }
    match &volume.projected {
        Some(source) => projected(source, pod, place, sources, minted),
        None => Ok(Vec::new()),
    }
}

/// A certificate of the pod is not made here. A token that was not requested is left out.
fn projected(
    source: &ProjectedVolumeSource,
    pod: &Pod,
    place: &Place,
    sources: &dyn Sources,
    minted: &Minted,
) -> Result<Vec<File>, VolumeError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
    let default = source.default_mode.unwrap_or(MODE);
    let (mut files, mut failures) = (Vec::new(), Vec::new());
    for projection in source.sources.iter().flatten() {
        let made = match projection {
            VolumeProjection {
                secret: Some(source),
                ..
            } => {
                let items = source.items.as_deref().unwrap_or_default();
                let optional = source.optional == Some(true);
                secret(sources, (namespace, &source.name), items, default, optional)
            }
            VolumeProjection {
                config_map: Some(source),
                ..
            } => {
                let items = source.items.as_deref().unwrap_or_default();
                let optional = source.optional == Some(true);
                config_map(sources, (namespace, &source.name), items, default, optional)
            }
            VolumeProjection {
                downward_api: Some(source),
                ..
            } => {
                let items = source.items.as_deref().unwrap_or_default();
                Ok(downward_files(items, pod, place, default))
            }
            VolumeProjection {
                service_account_token: Some(source),
                ..
            } => Ok(token_file(source, pod, default, minted)
                .into_iter()
                .collect()),
            VolumeProjection {
                cluster_trust_bundle: Some(source),
                ..
            } => trust_bundle_file(source, pod, default, sources),
            _ => Ok(Vec::new()),
        };
        match made {
            Ok(made) => files.extend(made),
            Err(why) => failures.push(why),
        }
    }
    match failures.pop() {
        None => Ok(files),
        Some(one) if failures.is_empty() => Err(one),
        Some(last) => {
            failures.push(last);
            Err(VolumeError::Sources(failures))
        }
    }
}

/// The file of a token. Only its owner may read it if all containers run as one user, and its group if that is `fsGroup`.
///
/// Mirrors `projected.collectData`.
fn token_file(
    source: &ServiceAccountTokenProjection,
    pod: &Pod,
    default: i32,
    minted: &Minted,
) -> Option<File> {
    let token = minted.get(&tokens::key(source))?;
    Some((source.path.clone(), token.clone(), owned_mode(pod, default)))
}

/// The file of the authorities that a source selects.
fn trust_bundle_file(
    source: &ClusterTrustBundleProjection,
    pod: &Pod,
    default: i32,
    sources: &dyn Sources,
) -> Result<Vec<File>, VolumeError> {
    let text = trust_bundles::certificates(source, sources)?;
    let mode = owned_mode(pod, default);
    Ok(vec![(source.path.clone(), Bytes::from(text), mode)])
}

/// The permissions of a file that belongs to a user: nobody else's when all containers run as one, and the group's when the pod
/// has one.
fn owned_mode(pod: &Pod, default: i32) -> i32 {
    let spec = pod.spec.as_ref();
    let context = spec.and_then(|spec| spec.security_context.as_ref());
    let group = context.and_then(|context| context.fs_group);
    if group.is_some() || only_user(pod).is_some() {
        0o600
    } else {
        default
    }
}

/// The user that all containers of a pod run as; nothing when they differ or do not say.
///
/// Mirrors `securitycontext.DetermineEffectiveRunAsUser` over all containers.
pub(super) fn only_user(pod: &Pod) -> Option<i64> {
    let spec = pod.spec.as_ref()?;
    let of_pod = spec
        .security_context
        .as_ref()
        .and_then(|context| context.run_as_user);
    let all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let mut users = all.map(|container| {
        let own = container.security_context.as_ref();
        own.and_then(|context| context.run_as_user).or(of_pod)
    });
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(first)
}

/// The name of the claim of a volume; nothing when it has none.
pub(super) fn claim_name(volume: &Volume, pod: &Pod) -> Option<String> {
    let pod_name = pod.metadata.name.as_deref().unwrap_or("");
    match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => Some(source.claim_name.clone()),
        (None, Some(_)) => Some(format!("{pod_name}-{}", volume.name)),
        (None, None) => None,
    }
}

fn secret(
    sources: &dyn Sources,
    (namespace, name): (&str, &str),
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Vec<File>, VolumeError> {
    let Some(found) = sources.secret(namespace, name) else {
        return if optional {
            Ok(Vec::new())
        } else {
            Err(missing("secret", name).into())
        };
    };
    let data = found.data.iter().flatten();
    let data: BTreeMap<&str, Bytes> = data
        .map(|(k, v)| (k.as_str(), v.0.clone().into()))
        .collect();
    chosen(&data, items, mode, optional).map_err(|MissingKey(key)| VolumeError::NoSecretKey(key))
}

fn config_map(
    sources: &dyn Sources,
    (namespace, name): (&str, &str),
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Vec<File>, VolumeError> {
    let Some(found) = sources.config_map(namespace, name) else {
        return if optional {
            Ok(Vec::new())
        } else {
            Err(missing("configmap", name).into())
        };
    };
    let texts = found
        .data
        .iter()
        .flatten()
        .map(|(k, v)| (k.as_str(), Bytes::from(v.clone())));
    let bytes = found
        .binary_data
        .iter()
        .flatten()
        .map(|(k, v)| (k.as_str(), v.0.clone().into()));
    let data: BTreeMap<&str, Bytes> = texts.chain(bytes).collect();
    chosen(&data, items, mode, optional).map_err(|MissingKey(key)| VolumeError::NoConfigMapKey(key))
}

/// A key that is listed, and that the ConfigMap or Secret does not have.
struct MissingKey(String);

/// The files of the keys that are wanted: all of them, or those that are listed.
///
/// # Errors
/// The key that is listed and not there.
fn chosen(
    data: &BTreeMap<&str, Bytes>,
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Vec<File>, MissingKey> {
    if items.is_empty() {
        let all = data
            .iter()
            .map(|(key, content)| ((*key).to_owned(), content.clone(), mode));
        return Ok(all.collect());
    }
    let mut files = Vec::new();
    for item in items {
        match data.get(item.key.as_str()) {
            Some(content) => files.push((
                item.path.clone(),
                content.clone(),
                item.mode.unwrap_or(mode),
            )),
            None if optional => {}
            None => return Err(MissingKey(item.key.clone())),
        }
    }
    Ok(files)
}

fn downward_files(
    items: &[DownwardAPIVolumeFile],
    pod: &Pod,
    place: &Place,
    mode: i32,
) -> Vec<File> {
    let spec = pod.spec.as_ref();
    let value = |item: &DownwardAPIVolumeFile| {
        if let Some(selector) = &item.field_ref {
            return downward::field(selector, pod, place);
        }
        let selector = item.resource_field_ref.as_ref()?;
        let name = selector.container_name.as_deref().unwrap_or("");
        let container = spec?.containers.iter().find(|c| c.name == name)?;
        downward::resource(selector, container, place)
    };
    let files = items.iter().filter_map(|item| {
        Some((
            item.path.clone(),
            Bytes::from(value(item)?),
            item.mode.unwrap_or(mode),
        ))
    });
    files.collect()
}
