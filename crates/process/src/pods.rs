//! What the runtime keeps of each pod besides its containers: its directory, its volumes, the files that say who it is.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::Pod;
use kubewright_cluster::node::runtime::{MountError, PodVolume, PodVolumes};
use parking_lot::Mutex;

use crate::names::{self, PodHosts};
use crate::state::State;
use crate::volumes::{self, Owners, Place};

/// The pods that have something on this machine, by uid.
#[derive(Debug, Default)]
pub(crate) struct Pods(Mutex<HashMap<String, Arc<PodEntry>>>);

/// What is kept of one pod.
#[derive(Debug)]
pub(crate) struct PodEntry {
    uid: String,
    /// The directory of the pod.
    pub(crate) directory: PathBuf,
    source: PodVolumes,
    places: Mutex<BTreeMap<String, Place>>,
    /// One at a time brings volumes up to date.
    updating: tokio::sync::Mutex<()>,
    /// Whether somebody keeps the volumes up to date.
    followed: AtomicBool,
    /// Whether the pod was evicted, which happens once.
    evicted: AtomicBool,
}

/// The files that say who a pod is, on this machine.
#[derive(Debug, Clone)]
pub(crate) struct NameFiles {
    pub(crate) hosts: PathBuf,
    pub(crate) resolv_conf: PathBuf,
    pub(crate) hostname: PathBuf,
}

impl Pods {
    /// The entry of a pod, made when it is missing.
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub(crate) fn enter(&self, state: &State, source: PodVolumes) -> io::Result<Arc<PodEntry>> {
        let pod = source.pod();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut all = self.0.lock();
        if let Some(entry) = all.get(&uid) {
            return Ok(entry.clone());
        }
        let directory = state.pods().join(&uid);
        crate::state::private_directory(&directory)?;
        let entry = Arc::new(PodEntry {
            uid: uid.clone(),
            directory,
            source,
            places: Mutex::default(),
            updating: tokio::sync::Mutex::default(),
            followed: AtomicBool::new(false),
            evicted: AtomicBool::new(false),
        });
        all.insert(uid, entry.clone());
        Ok(entry)
    }

    pub(crate) fn get(&self, uid: &str) -> Option<Arc<PodEntry>> {
        self.0.lock().get(uid).cloned()
    }

    /// Takes a pod out of the table; its files are for the caller to remove.
    pub(crate) fn leave(&self, uid: &str) -> Option<Arc<PodEntry>> {
        self.0.lock().remove(uid)
    }
}

impl PodEntry {
    /// Makes the volumes of the pod, or brings them up to date.
    ///
    /// # Errors
    /// Which volume cannot be made, and why. The others are as they were.
    pub(crate) async fn update(&self, state: &State) -> Result<(), MountError> {
        let _one = self.updating.lock().await;
        let volumes = self.source.read().await?;
        let fs_group = fs_group(&self.source.pod());
        let before = self.places.lock().clone();
        let (state, uid) = (state.clone(), self.uid.clone());
        let made = tokio::task::spawn_blocking(move || {
            prepare_all(&state, &uid, &volumes, &Owners::new(fs_group), &before)
        });
        let made = made.await;
        let places = made.unwrap_or_else(|error| Err(MountError::new("", error)))?;
        *self.places.lock() = places;
        Ok(())
    }

    /// Whether anything in the pod's volumes can change while it runs, or become too large.
    pub(crate) fn changes(&self) -> bool {
        let places = self.places.lock();
        let follows = |place: &Place| place.has_files() || place.limit.is_some();
        places.values().any(follows)
    }

    /// Evicts the pod if a volume has become larger than its limit.
    pub(crate) async fn evict_if_excessive(self: &Arc<Self>) {
        if self.evicted.load(Ordering::Acquire) {
            return;
        }
        let entry = self.clone();
        let found = tokio::task::spawn_blocking(move || entry.excess()).await;
        if let Some(message) = found.ok().flatten() {
            self.evicted.store(true, Ordering::Release);
            self.source.evict(message).await;
        }
    }

    /// What a kubelet says of a volume that is larger than its limit.
    fn excess(&self) -> Option<String> {
        let places = self.places.lock().clone();
        let (volume, _) = places.iter().find(|(_, place)| {
            let limit = place.limit;
            limit.is_some_and(|limit| volumes::exceeds(&place.path, limit))
        })?;
        let pod = self.source.pod();
        let mut all = pod
            .spec
            .iter()
            .flat_map(|spec| spec.volumes.iter().flatten());
        let found = all.find(|it| it.name == *volume)?;
        let limit = found.empty_dir.as_ref()?.size_limit.as_ref()?;
        Some(format!(
            "Usage of EmptyDir volume {volume:?} exceeds the limit {:?}. ",
            limit.0
        ))
    }

    /// Says whether nobody kept the volumes up to date until now; the caller does from then on.
    pub(crate) fn begin_following(&self) -> bool {
        !self.followed.swap(true, Ordering::AcqRel)
    }

    /// Nobody keeps the volumes up to date any more.
    pub(crate) fn end_following(&self) {
        self.followed.store(false, Ordering::Release);
    }

    /// Where a volume of the pod is.
    pub(crate) fn place(&self, volume: &str) -> Option<Place> {
        self.places.lock().get(volume).cloned()
    }

    /// The file for the termination message of one run of a container, which is empty.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn termination_log(&self, container: &str, run: u32) -> io::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = self.directory.join("containers").join(container);
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{run}.termination-log"));
        fs::write(&path, "")?;
        // Whoever the container runs as may write it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
        Ok(path)
    }

    /// Writes the files that say who the pod is and how names resolve.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(crate) fn name_files(
        &self,
        hosts: Option<&dyn PodHosts>,
        address: Option<Ipv4Addr>,
    ) -> io::Result<NameFiles> {
        let pod = self.source.pod();
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let own = names::own_lines(&pod, address);
        let path = |name: &str| self.directory.join(name);
        let file = match hosts {
            Some(hosts) => hosts.add(&self.uid, namespace, &own)?,
            None => {
                fs::write(path("hosts"), names::hosts_file(&own))?;
                path("hosts")
            }
        };
        let machine = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let cluster = hosts.and_then(|hosts| hosts.resolv_conf(namespace));
        let resolv = names::resolv_conf(&pod, cluster, &machine);
        fs::write(path("resolv.conf"), resolv)?;
        fs::write(path("hostname"), names::host_name(&pod) + "\n")?;
        for name in ["resolv.conf", "hostname"] {
            open_to_all(&path(name))?;
        }
        open_to_all(&file)?;
        Ok(NameFiles {
            hosts: file,
            resolv_conf: path("resolv.conf"),
            hostname: path("hostname"),
        })
    }

    /// Removes everything that the pod has on this machine.
    pub(crate) fn remove_files(&self, state: &State) {
        for directory in [self.directory.clone(), state.memory().join(&self.uid)] {
            remove_directory(&directory);
        }
    }

    pub(crate) fn source(&self) -> &PodVolumes {
        &self.source
    }
}

/// Removes a directory that may not be there.
pub(crate) fn remove_directory(directory: &Path) {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let path = directory.display();
            tracing::warn!(%error, %path, "the directory of a pod could not be removed");
        }
        _ => {}
    }
}

/// Removes what is left of pods that are no longer there.
pub(crate) fn remove_strays(state: &State, known: &std::collections::HashSet<String>) {
    for place in [state.pods(), state.memory()] {
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            let uid = entry.file_name().to_string_lossy().into_owned();
            if !known.contains(&uid) {
                remove_directory(&entry.path());
            }
        }
    }
}

fn prepare_all(
    state: &State,
    uid: &str,
    volumes: &[PodVolume],
    owners: &Owners,
    before: &BTreeMap<String, Place>,
) -> Result<BTreeMap<String, Place>, MountError> {
    let mut places = BTreeMap::new();
    for volume in volumes {
        let known = before.get(&volume.name);
        let place = volumes::prepare(state, uid, volume, owners, known)?;
        places.insert(volume.name.clone(), place);
    }
    Ok(places)
}

fn fs_group(pod: &Pod) -> Option<i64> {
    let context = pod.spec.as_ref()?.security_context.as_ref()?;
    context.fs_group
}

fn open_to_all(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
