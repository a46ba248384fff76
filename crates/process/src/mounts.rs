//! What is mounted into a container, and what a container is given instead where nothing can be mounted.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kubewright_cluster::node::runtime::{ContainerConfig, StartError, expand};

use crate::helper::message::{Mount, Source, Writable};
use crate::names::PodHosts;
use crate::pods::{NameFiles, PodEntry};
use crate::volumes::make_sub_path;

/// Where programs look for the credentials of their service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Where a container writes its last words when it does not say where.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// A volume of a container: where it is, and where the container wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VolumeAt {
    volume: String,
    path: PathBuf,
    part: Option<String>,
    target: String,
    writable: Writable,
}

/// Everything on this machine that belongs to one run of a container.
#[derive(Debug)]
pub(crate) struct Prepared {
    volumes: Vec<VolumeAt>,
    names: NameFiles,
    pub(crate) termination_log: PathBuf,
    kubeconfig: PathBuf,
}

impl Prepared {
    /// Looks up the volumes of a container, makes parts of them that are missing, and writes the files that its pod has.
    ///
    /// # Errors
    /// What is missing or cannot be made.
    pub(crate) fn new(
        entry: &PodEntry,
        config: &ContainerConfig,
        hosts: Option<&dyn PodHosts>,
    ) -> Result<Self, StartError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| StartError(format!("{what}: {error}"))
        };
        let id = &config.id;
        let log = entry.termination_log(&id.container, id.run);
        Ok(Self {
            volumes: volumes(entry, config)?,
            names: entry
                .name_files(hosts, config.address)
                .map_err(failed("the names of the pod cannot be written"))?,
            termination_log: log.map_err(failed("the termination log cannot be written"))?,
            kubeconfig: entry.directory.join("kubeconfig"),
        })
    }

    /// What is mounted in the namespaces of the container, outer paths first.
    pub(crate) fn mounts(&self, config: &ContainerConfig) -> Vec<Mount> {
        let bound = |path: &Path, target: &str, writable| Mount {
            source: Source::Path {
                path: path.to_owned(),
                part: None,
            },
            target: target.to_owned(),
            writable,
        };
        let log = config.container.termination_message_path.as_deref();
        let log = log
            .filter(|path| !path.is_empty())
            .unwrap_or(TERMINATION_LOG);
        let mut mounts = vec![
            bound(&self.names.hosts, "/etc/hosts", Writable::Yes),
            bound(&self.names.resolv_conf, "/etc/resolv.conf", Writable::Yes),
            bound(&self.names.hostname, "/etc/hostname", Writable::Yes),
            bound(&self.termination_log, log, Writable::Yes),
        ];
        // What a container mounts there itself counts.
        mounts.retain(|mount| {
            self.volumes
                .iter()
                .all(|volume| volume.target != mount.target)
        });
        mounts.extend(self.volumes.iter().map(|volume| Mount {
            source: Source::Path {
                path: volume.path.clone(),
                part: volume.part.clone(),
            },
            target: volume.target.clone(),
            writable: volume.writable,
        }));
        mounts.sort_by_key(|mount| Path::new(&mount.target).components().count());
        mounts
    }

    /// The variables that say where volumes are, for a program that does not see them at their paths.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::from([(
            "TERMINATION_MESSAGE_PATH".to_owned(),
            self.termination_log.display().to_string(),
        )]);
        for volume in &self.volumes {
            let place = volume.place().display().to_string();
            if volume.is_account() {
                variables.insert("SERVICE_ACCOUNT_DIR".to_owned(), place);
                let file = self.kubeconfig.display().to_string();
                variables.insert("KUBECONFIG".to_owned(), file);
            } else {
                variables.insert(volume.variable(), place);
            }
        }
        variables
    }

    /// The volumes that a program without a mount namespace does not see where it wants them.
    pub(crate) fn elsewhere(&self) -> Vec<String> {
        let away = self.volumes.iter();
        let away = away.filter(|v| !v.is_account() && v.place() != Path::new(&v.target));
        away.map(|volume| {
            format!(
                "volume {:?} is at {} and not at {}: the container has no mount namespace; its place is in the variable {}",
                volume.volume,
                volume.place().display(),
                volume.target,
                volume.variable()
            )
        })
        .collect()
    }

    /// Writes a kubeconfig with the credentials of the service account, for a program that cannot have them at their path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write_kubeconfig(&self, config: &ContainerConfig) -> io::Result<()> {
        let Some(account) = self.volumes.iter().find(|volume| volume.is_account()) else {
            return Ok(());
        };
        let (host, port) = (
            config.env("KUBERNETES_SERVICE_HOST").unwrap_or_default(),
            config.env("KUBERNETES_SERVICE_PORT").unwrap_or("443"),
        );
        let place = account.place();
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "pod",
            "clusters": [{"name": "cluster", "cluster": {
                "server": format!("https://{host}:{port}"),
                "certificate-authority": place.join("ca.crt"),
            }}],
            "users": [{"name": "account", "user": {"tokenFile": place.join("token")}}],
            "contexts": [{"name": "pod", "context": {
                "cluster": "cluster", "user": "account", "namespace": config.id.pod.namespace,
            }}],
        });
        std::fs::write(&self.kubeconfig, text.to_string())
    }
}

impl VolumeAt {
    fn is_account(&self) -> bool {
        self.target == SERVICE_ACCOUNT
    }

    fn place(&self) -> PathBuf {
        match &self.part {
            Some(part) => self.path.join(part),
            None => self.path.clone(),
        }
    }

    /// `VOLUME_` and the name of the volume in capitals.
    fn variable(&self) -> String {
        let letters = self.volume.chars().map(|c| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_uppercase(),
            _ => '_',
        });
        format!("VOLUME_{}", letters.collect::<String>())
    }
}

/// The volumes that a container mounts.
fn volumes(entry: &PodEntry, config: &ContainerConfig) -> Result<Vec<VolumeAt>, StartError> {
    if config
        .container
        .volume_devices
        .iter()
        .flatten()
        .next()
        .is_some()
    {
        let text = "volumeDevices: processes do not get block devices";
        return Err(StartError(text.to_owned()));
    }
    let mut found = Vec::new();
    for mount in config.container.volume_mounts.iter().flatten() {
        let Some(place) = entry.place(&mount.name) else {
            let text = format!("the volume {:?} is not mounted", mount.name);
            return Err(StartError(text));
        };
        let part = part(mount, config)?;
        if let Some(part) = &part
            && place.path.is_dir()
        {
            make_sub_path(&place.path, part).map_err(|error| {
                StartError(format!(
                    "failed to create subPath directory for volumeMount {:?} of container {:?}: {error}",
                    mount.name, config.container.name
                ))
            })?;
        }
        let read_only = mount.read_only == Some(true) || is_read_only(config, &mount.name);
        let target = format!("/{}", mount.mount_path.trim_matches('/'));
        found.push(VolumeAt {
            volume: mount.name.clone(),
            path: place.path,
            part,
            target,
            writable: if read_only {
                Writable::No
            } else {
                place.writable
            },
        });
    }
    Ok(found)
}

/// The part of a volume that a container mounts, with variables replaced.
fn part(
    mount: &k8s_openapi::api::core::v1::VolumeMount,
    config: &ContainerConfig,
) -> Result<Option<String>, StartError> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(part) = given(&mount.sub_path) {
        return Ok(Some(part));
    }
    let Some(expression) = given(&mount.sub_path_expr) else {
        return Ok(None);
    };
    let env: BTreeMap<String, String> = config.env.iter().cloned().collect();
    let part = expand(&expression, &env, &BTreeMap::new());
    if part.contains("$(") {
        let text = format!("missing value for {expression:?}");
        return Err(StartError(format!("failed to expand subPathExpr: {text}")));
    }
    Ok(Some(part))
}

/// Whether the pod uses a claim read-only.
fn is_read_only(config: &ContainerConfig, name: &str) -> bool {
    let spec = config.pod.spec.iter();
    let mut volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
    let volume = volumes.find(|volume| volume.name == name);
    let claim = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
    claim.is_some_and(|claim| claim.read_only == Some(true))
}
