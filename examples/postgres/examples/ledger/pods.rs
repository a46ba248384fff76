//! Pods whose containers are real processes of the agent, and what is done to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, Exit, Health, ProbeKind, Program,
};
use kubewright_example_postgres::protocol::AGENT_PORT;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is done to a primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Violence {
    /// SIGKILL of the agent and of all processes of the database.
    KillAll,
    /// SIGKILL of the main process of the database.
    KillDatabase,
    /// SIGKILL of the agent alone.
    KillAgent,
    /// SIGSTOP of everything, SIGCONT when another primary is at work.
    StopAll,
    /// SIGSTOP of the agent alone: the database runs on, and nobody hears of it.
    StopAgent,
}

/// All pods. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pods(Arc<Inner>);

struct Inner {
    agent: PathBuf,
    directory: PathBuf,
    running: Mutex<BTreeMap<String, Running>>,
    /// The password of each pod.
    passwords: Mutex<BTreeMap<String, String>>,
}

#[derive(Clone)]
struct Running {
    id: u32,
    address: String,
}

impl Pods {
    pub(crate) fn new(agent: PathBuf, directory: &Path) -> Self {
        Self(Arc::new(Inner {
            agent,
            directory: directory.to_owned(),
            running: Mutex::default(),
            passwords: Mutex::default(),
        }))
    }

    /// The members of a cluster that have an address.
    pub(crate) fn addresses(&self, cluster: &str) -> Vec<(String, String)> {
        let running = self.0.running.lock();
        let is_member = |name: &str| {
            let number = name
                .strip_prefix(cluster)
                .and_then(|it| it.strip_prefix('-'));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        running
            .iter()
            .filter(|(name, _)| is_member(name))
            .map(|(name, it)| (name.clone(), it.address.clone()))
            .collect()
    }

    pub(crate) fn password(&self, pod: &str) -> String {
        self.0
            .passwords
            .lock()
            .get(pod)
            .cloned()
            .unwrap_or_default()
    }

    /// The words of a container with paths of this machine instead of those of its volumes.
    fn arguments(&self, container: &ContainerConfig) -> Vec<String> {
        let spec = container.pod.spec.as_ref();
        let volumes = spec.and_then(|spec| spec.volumes.as_ref());
        let mounts = container.container.volume_mounts.iter().flatten();
        let places: Vec<(String, String)> = mounts
            .filter_map(|mount| {
                let volume = volumes?.iter().find(|it| it.name == mount.name)?;
                let claim = volume.persistent_volume_claim.as_ref()?;
                let directory = self.0.directory.join(&claim.claim_name);
                Some((mount.mount_path.clone(), directory.display().to_string()))
            })
            .collect();
        let place = |word: &String| {
            let mut word = word.clone();
            for (path, directory) in &places {
                word = word.replace(&format!("={path}"), &format!("={directory}"));
            }
            word
        };
        container.args.iter().map(place).collect()
    }

    /// Hurts the processes of a pod.
    pub(crate) async fn hurt(&self, pod: &str, violence: Violence) -> Result<()> {
        let agent = self.0.running.lock().get(pod).map(|it| it.id);
        let agent = agent.context("the pod does not run")?;
        let children = descendants(agent);
        let all = || [vec![agent], children.clone()].concat();
        match violence {
            Violence::KillAll => signal("-KILL", &all()).await,
            Violence::StopAll => signal("-STOP", &all()).await,
            Violence::KillAgent => signal("-KILL", &[agent]).await,
            Violence::StopAgent => signal("-STOP", &[agent]).await,
            Violence::KillDatabase => {
                // The agent starts it again, in the same term; so it has to be done until it is too late.
                for _ in 0..12 {
                    let database = descendants(agent);
                    signal("-KILL", &database[..database.len().min(1)]).await;
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                signal("-KILL", &[agent]).await;
            }
        }
        Ok(())
    }

    /// Has what was stopped go on.
    pub(crate) async fn resume(&self, pod: &str, violence: Violence) {
        if matches!(violence, Violence::StopAll | Violence::StopAgent) {
            let agent = self.0.running.lock().get(pod).map(|it| it.id);
            if let Some(agent) = agent {
                signal("-CONT", &[vec![agent], descendants(agent)].concat()).await;
            }
        }
    }

    /// Ends everything.
    pub(crate) async fn end(&self) {
        let agents: Vec<u32> = self.0.running.lock().values().map(|it| it.id).collect();
        for agent in agents {
            let all = [vec![agent], descendants(agent)].concat();
            signal("-KILL", &all).await;
        }
        // Databases whose agent was killed belong to nobody: their volumes name them.
        for entry in fs::read_dir(&self.0.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let file = entry.path().join("data/postmaster.pid");
            let text = fs::read_to_string(file).unwrap_or_default();
            if let Some(id) = text.lines().next().and_then(|id| id.parse().ok()) {
                let all = [vec![id], descendants(id)].concat();
                signal("-KILL", &all).await;
            }
        }
    }

    async fn ask(&self, pod: &str, request: Request<Bytes>) -> Option<Response<Bytes>> {
        let address = self.0.running.lock().get(pod)?.address.clone();
        let asked = async {
            let stream = TcpStream::connect((address.as_str(), AGENT_PORT))
                .await
                .ok()?;
            let io = TokioIo::new(stream);
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.ok()?;
            let (head, body) = request.into_parts();
            let path = head.uri.path_and_query()?.as_str().to_owned();
            let request = Request::builder().method(head.method).uri(path);
            let request = request.header(http::header::HOST, address.as_str());
            let request = request.body(Full::new(body)).ok()?;
            let exchange = async {
                let (head, body) = sender.send_request(request).await.ok()?.into_parts();
                let body = body.collect().await.ok()?.to_bytes();
                Some(Response::from_parts(head, body))
            };
            tokio::select! {
                biased;
                answer = exchange => answer,
                _ = connection => None,
            }
        };
        timeout(PATIENCE, asked).await.ok().flatten()
    }
}

impl Program for Pods {
    async fn run(&self, container: ContainerConfig) -> Exit {
        let name = container.id.pod.name.clone();
        let address = container.env("POD_IP").unwrap_or_default().to_owned();
        let password = container.env("POSTGRES_PASSWORD").unwrap_or_default();
        let password = (name.clone(), password.to_owned());
        self.0.passwords.lock().extend([password]);
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.0.directory.join(format!("{name}.log")));
        let Ok(log) = log else {
            return Exit::code(1);
        };
        let mut command = Command::new(&self.0.agent);
        command.envs(container.env.clone());
        command.args(self.arguments(&container)).kill_on_drop(true);
        let errors = log.try_clone().map_or(Stdio::null(), Stdio::from);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let Ok(mut child) = command.spawn() else {
            return Exit::code(127);
        };
        let id = child.id().unwrap_or_default();
        self.0
            .running
            .lock()
            .insert(name.clone(), Running { id, address });
        tokio::select! {
            ended = child.wait() => {
                let code = ended.ok().and_then(|status| status.code());
                Exit::code(code.unwrap_or(137))
            }
            () = container.stopped() => {
                signal("-TERM", &[id]).await;
                let _ = child.wait().await;
                Exit::code(0)
            }
        }
    }

    async fn http(
        &self,
        container: ContainerId,
        _port: u16,
        request: Request<Bytes>,
    ) -> Option<Response<Bytes>> {
        self.ask(&container.pod.name, request).await
    }

    async fn probe(&self, container: ContainerId, kind: ProbeKind) -> Health {
        if kind == ProbeKind::Liveness {
            return Health::Healthy;
        }
        let request = Request::get("/readyz").body(Bytes::new());
        let Ok(request) = request else {
            return Health::Healthy;
        };
        match self.ask(&container.pod.name, request).await {
            Some(response) if response.status().is_success() => Health::Healthy,
            _ => Health::Unhealthy("not ready".to_owned()),
        }
    }
}

async fn signal(name: &str, ids: &[u32]) {
    if ids.is_empty() {
        return;
    }
    let ids = ids.iter().map(u32::to_string);
    // A process that is gone already is what was wanted.
    let _ = Command::new("kill")
        .arg(name)
        .args(ids)
        .stderr(Stdio::null())
        .status()
        .await;
}

/// All processes below one, those nearest first.
fn descendants(root: u32) -> Vec<u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|it| it.parse::<u32>().ok())
        else {
            continue;
        };
        let text = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let parent = after_name.split_whitespace().nth(1);
        if let Some(parent) = parent.and_then(|it| it.parse::<u32>().ok()) {
            parents.insert(id, parent);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(
            parents
                .iter()
                .filter(|(_, it)| **it == parent)
                .map(|(id, _)| *id),
        );
        next += 1;
    }
    found.remove(0);
    found
}
