//! Etcd on simulated nodes as the real program: a container is a process of this machine at the address of its pod.
//!
//! It runs in a network namespace in which the network of pods is local, with a hosts file of its own, so that addresses and names of
//! pods are what they are in a cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, Exit, Health, ProbeKind, Program,
};
use parking_lot::Mutex;
use tokio::net::TcpStream;

/// What runs at the moment, and where.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// The processes of members by the name of their pod.
    pub(crate) pids: BTreeMap<String, u32>,
    /// The addresses of pods by name.
    pub(crate) addresses: BTreeMap<String, String>,
    /// The names of pods with their addresses, for the hosts file.
    hosts: BTreeMap<String, String>,
}

/// A version of etcd on this machine.
#[derive(Debug, Clone)]
pub(crate) struct RealEtcd {
    /// The directory with `etcd` and `etcdctl`.
    pub(crate) programs: PathBuf,
    /// Where volumes and logs are.
    pub(crate) root: PathBuf,
    /// What runs at the moment.
    pub(crate) running: Arc<Mutex<Processes>>,
}

/// A process that ends with its container, however that ends, and is in the table until then.
struct Process {
    child: Child,
    running: Arc<Mutex<Processes>>,
    pod: String,
}

impl Process {
    /// Waits until it has ended.
    async fn ended(&mut self) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
                ended => return ended.ok().flatten(),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_before = self.child.kill();
        let _reaped = self.child.wait();
        let mut running = self.running.lock();
        if running.pids.get(&self.pod) == Some(&self.child.id()) {
            running.pids.remove(&self.pod);
        }
    }
}

impl RealEtcd {
    /// Makes the directories of the volumes, and gives where each mount path is on this machine.
    fn volumes(&self, config: &ContainerConfig) -> std::io::Result<Vec<(String, PathBuf)>> {
        let pod = self.root.join("pods").join(&config.id.pod.uid);
        let spec = config.pod.spec.as_ref();
        let volumes = spec
            .and_then(|spec| spec.volumes.clone())
            .unwrap_or_default();
        let mounts = config.container.volume_mounts.clone().unwrap_or_default();
        let annotations = config.pod.metadata.annotations.clone().unwrap_or_default();
        let member = annotations.get("etcd.kubewright.dev/member-id");
        let mut paths = Vec::new();
        for mount in mounts {
            let volume = volumes.iter().find(|volume| volume.name == mount.name);
            let claim = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
            let directory = match claim {
                // Another claim of the same name belongs to another member.
                Some(claim) => {
                    let member = member.map_or("", String::as_str);
                    self.root
                        .join("claims")
                        .join(format!("{}-{member}", claim.claim_name))
                }
                None => pod.join(&mount.name),
            };
            std::fs::create_dir_all(&directory)?;
            for file in &config.files {
                if let Some(name) = file.path.strip_prefix(&format!("{}/", mount.mount_path)) {
                    std::fs::write(directory.join(name), &file.content)?;
                }
            }
            paths.push((mount.mount_path, directory));
        }
        Ok(paths)
    }

    /// Puts the name of a pod into the hosts file, which is this namespace's own.
    fn publish(&self, config: &ContainerConfig) -> std::io::Result<()> {
        let (spec, pod) = (config.pod.spec.as_ref(), &config.id.pod);
        let mut running = self.running.lock();
        for alias in spec
            .and_then(|spec| spec.host_aliases.clone())
            .into_iter()
            .flatten()
        {
            let names = alias.hostnames.into_iter().flatten();
            running
                .hosts
                .extend(names.map(|name| (name, alias.ip.clone())));
        }
        let subdomain = spec.and_then(|spec| spec.subdomain.as_deref());
        if let (Some(subdomain), Some(address)) = (subdomain, config.address) {
            let name = format!("{}.{subdomain}.{}.svc", pod.name, pod.namespace);
            let address = address.to_string();
            running.addresses.insert(pod.name.clone(), address.clone());
            running.hosts.insert(name, address);
        }
        let lines = running.hosts.iter();
        let lines: String = lines
            .map(|(name, address)| format!("{address} {name}\n"))
            .collect();
        std::fs::write("/etc/hosts", format!("127.0.0.1 localhost\n{lines}"))
    }

    fn command(&self, config: &ContainerConfig) -> std::io::Result<Command> {
        let volumes = self.volumes(config)?;
        self.publish(config)?;
        let place = |word: &String| {
            let mut word = word.clone();
            for (path, directory) in &volumes {
                word = word.replace(path.as_str(), &directory.to_string_lossy());
            }
            word
        };
        let mut words = config.command.iter().chain(&config.args).map(place);
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(self.programs.join(program));
        command.args(words).env_clear();
        command.envs(config.env.iter().map(|(name, value)| (name, value)));
        let id = &config.id;
        let log = format!("{}-{}-{}.log", id.pod.name, &id.pod.uid[..8], id.run);
        let log = std::fs::File::create(self.root.join(log))?;
        command
            .stdout(log.try_clone()?)
            .stderr(Stdio::from(log))
            .stdin(Stdio::null());
        Ok(command)
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, name: &str) {
    let kill = std::process::Command::new("kill")
        .args([name, &pid.to_string()])
        .status();
    drop(kill);
}

impl Program for RealEtcd {
    async fn run(&self, container: ContainerConfig) -> Exit {
        let child = self
            .command(&container)
            .and_then(|mut command| command.spawn());
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                container.log.print(&format!("cannot start: {error}"));
                return Exit::code(127);
            }
        };
        let (pid, pod) = (child.id(), container.id.pod.name.clone());
        if container.id.container == "etcd" {
            self.running.lock().pids.insert(pod.clone(), pid);
        }
        let running = self.running.clone();
        let mut process = Process {
            child,
            running,
            pod,
        };
        let ended = tokio::select! {
            ended = process.ended() => ended,
            () = container.stopped() => {
                signal(pid, "-TERM");
                process.ended().await
            }
        };
        let code = ended.and_then(|status| status.code());
        Exit::code(code.unwrap_or(137))
    }

    async fn probe(&self, container: ContainerId, kind: ProbeKind) -> Health {
        if kind != ProbeKind::Readiness {
            return Health::Healthy;
        }
        let address = self
            .running
            .lock()
            .addresses
            .get(&container.pod.name)
            .cloned();
        let address = format!("{}:2381", address.unwrap_or_default());
        let connected = tokio::time::timeout(Duration::from_secs(1), TcpStream::connect(&address));
        match connected.await {
            Ok(Ok(_)) => Health::Healthy,
            _ => Health::Unhealthy(format!("nothing listens on {address}")),
        }
    }
}

/// Makes the network of pods local to this namespace, and its hosts file our own.
pub(crate) fn prepare(root: &Path) -> std::io::Result<()> {
    let hosts = root.join("hosts");
    std::fs::write(&hosts, "127.0.0.1 localhost\n")?;
    let hosts = hosts.to_string_lossy().into_owned();
    for words in [
        vec!["ip", "link", "set", "lo", "up"],
        vec![
            "ip",
            "route",
            "add",
            "local",
            "10.244.0.0/16",
            "dev",
            "lo",
            "src",
            "127.0.0.1",
        ],
        vec!["mount", "--bind", &hosts, "/etc/hosts"],
    ] {
        let status = std::process::Command::new(words[0])
            .args(&words[1..])
            .status()?;
        if !status.success() {
            return Err(std::io::Error::other(words.join(" ")));
        }
    }
    Ok(())
}
