//! The runtime: containers as processes of this machine.

mod node;

use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::Pod;
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, ExecTarget, Exit, Health, MountError, PodId, PodView, PodVolumes,
    ProbeKind, Refused, Runtime as _, StartError,
};
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::builder::{BuildError, Processes};
use crate::cgroup::Cgroup;
use crate::container::{self, Running};
use crate::helper::message::Ask;
use crate::isolation::Isolation;
use crate::ledger::Ledger;
use crate::mounts::Prepared;
use crate::options::Options;
use crate::plan::plan;
use crate::pods::{PodEntry, Pods, remove_strays};
use crate::session::Call;
use crate::termination::Message;
use crate::{exec, hooks, probe, sampler};

/// How often volumes are compared with the objects that they are made of.
const FOLLOW: Duration = Duration::from_secs(1);
/// What is left of a grace period that a hook has used up, as a kubelet has it.
const LEAST_GRACE: Duration = Duration::from_secs(2);
/// How long containers may take to end when the nodes stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Containers as processes of this machine. Clones are the same runtime.
#[derive(Clone)]
pub struct ProcessRuntime(Arc<Inner>);

struct Inner {
    options: Options,
    running: Mutex<HashMap<ContainerId, Arc<Running>>>,
    pods: Pods,
    /// Containers that were to stop before they had started, with their grace periods.
    early_stops: Mutex<HashMap<ContainerId, Duration>>,
    /// What pods of an earlier run have left is removed once.
    strays: Once,
    /// Whether somebody looks at what containers use.
    measured: AtomicBool,
}

/// Takes a container out of the table when whoever drives it is done with it, in whatever way.
struct Entered {
    runtime: ProcessRuntime,
    id: ContainerId,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.runtime.0.running.lock().remove(&self.id);
    }
}

impl ProcessRuntime {
    /// Makes a runtime as it is wanted.
    ///
    /// # Errors
    /// When there is no helper, or the directory cannot be used or is used by another cluster.
    pub(crate) fn of(processes: Processes) -> Result<Self, BuildError> {
        Options::of(processes).map(Self::new)
    }

    pub(crate) fn new(options: Options) -> Self {
        Self(Arc::new(Inner {
            options,
            running: Mutex::default(),
            pods: Pods::default(),
            early_stops: Mutex::default(),
            strays: Once::new(),
            measured: AtomicBool::new(false),
        }))
    }

    /// Why the kernel does not limit what containers use; nothing where it does.
    pub fn no_limits(&self) -> Option<String> {
        let error = self.0.options.cgroups.as_ref().err();
        error.map(ToString::to_string)
    }

    /// How containers are kept apart from the machine.
    pub fn isolation(&self) -> &Isolation {
        &self.0.options.isolation
    }

    fn call(&self, role: Vec<String>) -> Call {
        let state = &self.0.options.state;
        Call {
            helper: self.0.options.helper.path.clone(),
            subcommand: self.0.options.helper.subcommand,
            role,
            ledger: Ledger {
                directory: state.ledger(),
                id: state.id().to_owned(),
            },
        }
    }

    /// How a helper is called for a command in a container.
    fn command_call(&self, running: &Running) -> Call {
        let mut role = vec!["command".to_owned()];
        if let Some(init) = running.init {
            role.extend([running.pid.to_string(), init.to_string()]);
        }
        self.call(role)
    }

    fn find(&self, id: &ContainerId) -> Option<Arc<Running>> {
        self.0.running.lock().get(id).cloned()
    }

    fn of_pod(&self, pod: &PodId) -> Vec<Arc<Running>> {
        let running = self.0.running.lock();
        let own = running.iter().filter(|(id, _)| id.pod == *pod);
        own.map(|(_, running)| running.clone()).collect()
    }

    /// Makes the volumes of a pod, and keeps them up to date while containers of it run.
    async fn mount_all(self, volumes: PodVolumes) -> Result<(), MountError> {
        let state = &self.0.options.state;
        self.0
            .strays
            .call_once(|| remove_strays(state, &volumes.all_pods()));
        let entry = self.0.pods.enter(state, volumes);
        let entry = entry.map_err(|error| MountError::new("", error))?;
        entry.update(state).await
    }

    async fn start_one(
        self,
        config: ContainerConfig,
    ) -> Result<BoxFuture<'static, Exit>, StartError> {
        let call = self.call(self.0.options.isolation.role());
        let id = config.id.clone();
        let Some(entry) = self.0.pods.get(&id.pod.uid) else {
            return Err(StartError("the pod has left its node".to_owned()));
        };
        let options = self.0.options.clone();
        let prepare = async {
            let (entry, config) = (entry.clone(), config.clone());
            let prepared = tokio::task::spawn_blocking(move || {
                let prepared = Prepared::new(&entry, &config, options.hosts.as_deref())?;
                let launch = plan(&options, &config, &prepared)?;
                Ok((prepared.termination_log.clone(), launch))
            });
            let text = |error: tokio::task::JoinError| StartError(error.to_string());
            prepared.await.map_err(text)?
        };
        let (log, launch) = prepare.await?;
        let cgroup = self.cgroup(&config)?;
        let (running, life) = container::start(&call, launch, &config, cgroup).await?;
        let entered = Entered {
            id: id.clone(),
            runtime: self.clone(),
        };
        self.0.running.lock().insert(id.clone(), running.clone());
        self.measure();
        self.keep_up_to_date(&entry);
        if self.0.pods.get(&id.pod.uid).is_none() {
            // The pod left while its container was being started.
            running.ask(Ask::Kill);
        }
        let early = self.0.early_stops.lock().remove(&id);
        if let Some(grace) = early {
            self.stop(&id, grace);
        }
        let message = Message::of(&config, log);
        let container = running.clone();
        let mut live = async move {
            let (mut exit, last_lines) = life.live().await;
            if exit.code != 0 && container.is_out_of_memory() {
                exit.reason = Some("OOMKilled".to_owned());
            }
            drop((entered, container));
            message.add_to(exit, &last_lines)
        }
        .boxed();
        let after = self.after_start(&config, &running);
        tokio::select! {
            () = after => Ok(live),
            exit = &mut live => Ok(std::future::ready(exit).boxed()),
        }
    }

    /// Runs the hook of a container that has just started, and ends the container when the hook fails.
    async fn after_start(&self, config: &ContainerConfig, running: &Arc<Running>) {
        let container = &config.container;
        let hook = container
            .lifecycle
            .as_ref()
            .and_then(|hooks| hooks.post_start.as_ref());
        let Some(hook) = hook else {
            return;
        };
        let whose = (&config.id.pod, container);
        let done = hooks::run(hook, whose, &self.command_call(running), running).await;
        if let Err(why) = done {
            config.events.warn("FailedPostStartHook", why.to_string());
            self.stop(&config.id, grace_of(&config.pod));
        }
    }

    /// Asks a container to end, after its hook, and kills it when its grace period is over.
    async fn stop_one(self, running: Arc<Running>, grace: Duration) {
        let begun = Instant::now();
        if let Some(hook) = running.pre_stop() {
            let whose = (&running.id.pod, &running.container);
            let call = self.command_call(&running);
            let run = hooks::run(hook, whose, &call, &running);
            let done = tokio::select! {
                done = tokio::time::timeout(grace, run) => done,
                () = running.ended() => return,
            };
            if let Ok(Err(why)) = done {
                running.events.warn("FailedPreStopHook", why.to_string());
            }
        }
        let left = grace
            .saturating_sub(begun.elapsed())
            .max(LEAST_GRACE.min(grace));
        running.ask(Ask::Signal(Signal::SIGTERM as i32));
        if tokio::time::timeout(left, running.ended()).await.is_err() {
            running.ask(Ask::Kill);
        }
    }

    /// The control group of a container; nothing where there are none.
    fn cgroup(&self, config: &ContainerConfig) -> Result<Option<Cgroup>, StartError> {
        let Ok(cgroups) = &self.0.options.cgroups else {
            return Ok(None);
        };
        let id = &config.id;
        let name = format!("{}-{}-{}", id.pod.uid, id.container, id.run);
        let made = cgroups.create(&name, &config.limits);
        made.map(Some)
            .map_err(|error| StartError(format!("limits cannot be set: {error}")))
    }

    /// Looks at what containers use, for as long as there are some.
    fn measure(&self) {
        if self.0.measured.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = self.clone();
        tokio::spawn(async move {
            loop {
                let all: Vec<_> = own.0.running.lock().values().cloned().collect();
                if all.is_empty() {
                    own.0.measured.store(false, Ordering::Release);
                    // One that was started at this moment relied on us.
                    if own.0.running.lock().is_empty()
                        || own.0.measured.swap(true, Ordering::AcqRel)
                    {
                        return;
                    }
                    continue;
                }
                let pause = sampler::pause(&all);
                let sampled = tokio::task::spawn_blocking(move || sampler::sample(&all));
                if sampled.await.is_err() {
                    tracing::warn!("what containers use could not be measured");
                }
                tokio::time::sleep(pause).await;
            }
        });
    }

    /// Has the volumes of a pod follow the objects that they are made of, for as long as a container of it runs.
    fn keep_up_to_date(&self, entry: &Arc<PodEntry>) {
        if !entry.changes() || !entry.begin_following() {
            return;
        }
        let (own, entry) = (self.clone(), entry.clone());
        tokio::spawn(async move {
            let pod = PodId::of(&entry.source().pod());
            let mut pause = FOLLOW;
            loop {
                tokio::time::sleep(pause).await;
                if own.of_pod(&pod).is_empty() {
                    entry.end_following();
                    // One that was started at this moment relied on us.
                    if own.of_pod(&pod).is_empty() || !entry.begin_following() {
                        return;
                    }
                }
                let began = Instant::now();
                entry.evict_if_excessive().await;
                // Directories with very many files are looked at less often.
                pause = FOLLOW.max(10 * began.elapsed());
                if let Err(error) = entry.update(&own.0.options.state).await {
                    tracing::debug!(%error, %pod, "a volume could not be brought up to date");
                }
            }
        });
    }

    /// The address of a pod, which its containers have to listen on.
    fn address(&self, pod: &PodView) -> Option<Ipv4Addr> {
        let mut running = pod.running.iter().filter_map(|id| self.find(id));
        running.find_map(|running| running.address)
    }

    async fn connect(&self, pod: &PodView, port: u16) -> Result<TcpStream, Refused> {
        let address = self.address(pod).ok_or(Refused(port))?;
        let connected = TcpStream::connect(SocketAddr::new(address.into(), port)).await;
        connected.map_err(|_| Refused(port))
    }

    async fn probe_one(self, target: ExecTarget, kind: ProbeKind) -> Health {
        let Some(running) = self.find(&target.id) else {
            return Health::Unhealthy("the container does not run".to_owned());
        };
        let spec = match kind {
            ProbeKind::Startup => target.container.startup_probe.as_ref(),
            ProbeKind::Liveness => target.container.liveness_probe.as_ref(),
            ProbeKind::Readiness => target.container.readiness_probe.as_ref(),
        };
        let Some(spec) = spec else {
            return Health::Healthy;
        };
        let address = running.address.unwrap_or(Ipv4Addr::LOCALHOST);
        if let Some(health) = probe::network(spec, &target.container, address).await {
            return health;
        }
        let command = spec.exec.as_ref().and_then(|exec| exec.command.clone());
        let Some(command) = command else {
            return Health::Healthy;
        };
        match exec::capture(&self.command_call(&running), &running, command).await {
            Ok((0, _)) => Health::Healthy,
            Ok((_, output)) => Health::Unhealthy(output.trim_end().to_owned()),
            Err(error) => Health::Unhealthy(error.0),
        }
    }

    /// Ends containers: first asks, then kills; resolves when they have gone.
    async fn end(running: Vec<Arc<Running>>, within: Duration) {
        for one in &running {
            one.ask(Ask::Signal(Signal::SIGTERM as i32));
        }
        let ended = join_all(running.iter().map(|one| one.ended()));
        if tokio::time::timeout(within, ended).await.is_ok() {
            return;
        }
        for one in &running {
            one.ask(Ask::Kill);
        }
        let ended = join_all(running.iter().map(|one| one.ended()));
        if tokio::time::timeout(within, ended).await.is_err() {
            tracing::warn!("containers that were killed have not ended");
        }
    }
}

/// How long the containers of a pod may take to end.
fn grace_of(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.termination_grace_period_seconds);
    Duration::from_secs(seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(30))
}

impl fmt::Debug for ProcessRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessRuntime({} run)", self.0.running.lock().len())
    }
}
