//! The nodes of the lane: containers are processes of this machine, with their volumes at their paths and the names of the cluster.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{HostAlias, Pod};
use kube::{Api, ResourceExt};
use kubewright_process::{ImageProgram, ImageTable, PodHosts, ProcessRuntime, Processes};
use kubewright_proxy::{HostsLine, LoopbackNetwork};
use parking_lot::Mutex;

/// What runs at the moment, and where.
#[derive(Debug, Default)]
pub(crate) struct Running {
    /// The processes of members by the name of their pod.
    pub(crate) pids: BTreeMap<String, u32>,
    /// The addresses of pods by name.
    pub(crate) addresses: BTreeMap<String, String>,
}

/// The names of the cluster in the hosts files of pods.
#[derive(Debug)]
struct Names(LoopbackNetwork);

impl PodHosts for Names {
    fn add(&self, uid: &str, namespace: &str, own: &[HostAlias]) -> io::Result<PathBuf> {
        let line = |alias: &HostAlias| {
            let address = alias.ip.parse().map_err(io::Error::other)?;
            let names = alias.hostnames.clone().unwrap_or_default();
            Ok(HostsLine { address, names })
        };
        let own: Vec<HostsLine> = own.iter().map(line).collect::<io::Result<_>>()?;
        self.0.hosts().add(uid, namespace, &own)
    }

    fn remove(&self, uid: &str) {
        self.0.hosts().remove(uid);
    }

    fn resolv_conf(&self, namespace: &str) -> Option<String> {
        self.0.resolv_conf(namespace)
    }
}

/// The runtime of the nodes. The programs of each version are in a directory.
pub(crate) fn runtime(
    helper: &Path,
    root: &Path,
    versions: &[(&str, PathBuf)],
    network: &LoopbackNetwork,
) -> Result<Arc<ProcessRuntime>> {
    let mut table = ImageTable::default();
    for (version, programs) in versions {
        let image = format!("quay.io/coreos/etcd:v{version}");
        let etcd = programs.join("etcd").display().to_string();
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let program = ImageProgram::new(etcd).env("PATH", path);
        table = table.image(image.as_str(), program);
    }
    let processes = Processes::default().table(table).helper(helper);
    let names = Arc::new(Names(network.clone()));
    Ok(processes
        .data_dir(root.join("nodes"))
        .hosts(names)
        .build()?)
}

/// Keeps the table of what runs up to date until it is dropped.
pub(crate) async fn follow(client: kube::Client, running: Arc<Mutex<Running>>) {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    loop {
        if let Ok(all) = pods.list(&Default::default()).await {
            let address = |pod: &Pod| Some((pod.name_any(), pod.status.as_ref()?.pod_ip.clone()?));
            running.lock().addresses = all.iter().filter_map(address).collect();
        }
        running.lock().pids = members();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The processes of etcd on this machine that belong to clusters of the lane, by the name of their member.
fn members() -> BTreeMap<String, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let member = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let mut words = words.split('\0');
        let is_etcd = words.next()?.ends_with("/etcd");
        let name = words.find_map(|word| word.strip_prefix("--name="))?;
        is_etcd.then(|| (name.to_owned(), pid))
    };
    entries.filter_map(member).collect()
}

/// Kills a process.
pub(crate) fn kill(pid: u32) {
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    // One that has ended already is what was wanted.
    drop(killed);
}
