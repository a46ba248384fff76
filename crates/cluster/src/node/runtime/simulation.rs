//! The runtime that every cluster has: it starts nothing but the programs of tests and shells that somebody talks to.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_server::{Streams, Usage, serve_http};
use parking_lot::{Mutex, RwLock};
use tokio::io::DuplexStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::builtin::{Effect, Halt, Shell};
use super::config::{ContainerConfig, ContainerId, PodId};
use super::files::Files;
use super::hooks::Hooks;
use super::image::{ImagePattern, ImagePull, PullError};
use super::program::{Erased, Health, ProbeKind, Program};
use super::{ExecError, ExecTarget, Exit, Life, PodView, Refused, Runtime, StartError};
use crate::node::kubelet::hooks::LEAST_GRACE;
use crate::node::kubelet::termination;

/// How often a program is asked how much memory it uses, if it has a limit: `housekeepingInterval` of a kubelet's cAdvisor.
const MEASURED_EVERY: Duration = Duration::from_secs(10);
/// Most input that a command reads.
const MOST_INPUT: usize = 64 << 20;

/// Containers that are simulated: scripted ones, programs of tests, and a small shell for `exec`. Clones are the same.
#[derive(Clone, Default)]
pub struct Simulation(Arc<Inner>);

#[derive(Default)]
struct Inner {
    rules: RwLock<Rules>,
    live: Mutex<HashMap<ContainerId, Arc<Process>>>,
    files: Mutex<BTreeMap<(PodId, String), Files>>,
}

#[derive(Clone, Default)]
struct Rules {
    /// The last one that fits an image counts.
    programs: Vec<(ImagePattern, Arc<dyn Erased>)>,
    missing: Vec<ImagePattern>,
    private: Vec<ImagePattern>,
}

/// A container that was started.
struct Process {
    stopping: CancellationToken,
    killed: CancellationToken,
    hooks: Option<Hooks>,
}

impl Simulation {
    /// Runs this program in containers of these images from now on; pods that run already keep what they have.
    pub fn run_image(&self, images: impl Into<ImagePattern>, program: impl Program) {
        let mut rules = self.0.rules.write();
        rules.programs.push((images.into(), Arc::new(program)));
    }

    /// No registry has these images from now on.
    pub fn miss_image(&self, images: impl Into<ImagePattern>) {
        self.0.rules.write().missing.push(images.into());
    }

    /// These images can be had again: takes back [`miss_image`](Self::miss_image) of the same pattern.
    pub fn provide_image(&self, images: impl Into<ImagePattern>) {
        let images = images.into();
        self.0.rules.write().missing.retain(|one| *one != images);
    }

    /// These images need a pull secret for their registry from now on.
    pub fn protect_image(&self, images: impl Into<ImagePattern>) {
        self.0.rules.write().private.push(images.into());
    }

    /// Whether an image can be pulled with these credentials.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self, pull: &ImagePull) -> Result<(), PullError> {
        let rules = self.0.rules.read();
        let any = |patterns: &[ImagePattern]| patterns.iter().any(|p| p.matches(&pull.image));
        if any(&rules.missing) {
            return Err(PullError::missing(&pull.image));
        }
        if any(&rules.private) && !pull.credentials.cover(&pull.image) {
            return Err(PullError::unauthorized(&pull.image));
        }
        Ok(())
    }

    /// Returns whether a test has given an image a behaviour.
    pub fn has_program(&self, image: &str) -> bool {
        self.program(image).is_some()
    }

    fn program(&self, image: &str) -> Option<Arc<dyn Erased>> {
        let rules = self.0.rules.read();
        let mut found = rules.programs.iter().rev();
        let found = found.find(|(pattern, _)| pattern.matches(image));
        found.map(|(_, program)| program.clone())
    }

    /// Works on the files of a container.
    fn with_files<T>(&self, target: &ExecTarget, work: impl FnOnce(&mut Files) -> T) -> T {
        let key = (target.id.pod.clone(), target.id.container.clone());
        let mut all = self.0.files.lock();
        let files = all.entry(key).or_default();
        files.mount(&target.files);
        work(files)
    }

    async fn shell(self, target: ExecTarget, command: Vec<String>, mut streams: Streams) -> i32 {
        if is_interactive(&command) && streams.has_stdin() {
            return self.converse(&target, &mut streams).await;
        }
        let mut stdin = Vec::new();
        while reads(&command)
            && let Some(bytes) = streams.read().await
        {
            if stdin.len() + bytes.len() > MOST_INPUT {
                break;
            }
            stdin.extend_from_slice(&bytes);
        }
        let (effects, end) = self.evaluate(&target, &command, stdin.into());
        play(effects, &streams).await;
        match end {
            Ok(code) => code,
            Err(Halt::Exit(code)) => code,
            Err(Halt::NotPlain) => {
                let name = command.first().map_or("", String::as_str);
                let text = format!("sh: {name}: not found (this container is simulated)\n");
                streams.write_error(text).await;
                127
            }
        }
    }

    fn evaluate(
        &self,
        target: &ExecTarget,
        command: &[String],
        stdin: Bytes,
    ) -> (Vec<Effect>, Result<i32, Halt>) {
        let hostname = &target.id.pod.name;
        self.with_files(target, |files| {
            let mut shell = Shell::new(&target.env, hostname, files);
            shell.stdin = stdin;
            if let Some(directory) = &target.container.working_dir {
                shell.directory.clone_from(directory);
            }
            let end = shell.run(command);
            let status = shell.status;
            (std::mem::take(&mut shell.effects), end.map(|()| status))
        })
    }

    /// A shell that reads commands line by line.
    async fn converse(&self, target: &ExecTarget, streams: &mut Streams) -> i32 {
        let (mut pending, mut status) = (String::new(), 0);
        if streams.tty() {
            streams.write("/ # ").await;
        }
        while let Some(bytes) = streams.read().await {
            let text = String::from_utf8_lossy(&bytes).replace('\r', "\n");
            if streams.tty() {
                // A terminal shows what is typed.
                streams.write(text.replace('\n', "\r\n")).await;
            }
            pending += &text;
            while let Some((line, rest)) = pending.split_once('\n') {
                let (line, rest) = (line.trim().to_owned(), rest.to_owned());
                pending = rest;
                if line == "\u{4}" {
                    return status;
                }
                let command = ["sh".to_owned(), "-c".to_owned(), line.clone()];
                let (effects, end) = self.evaluate(target, &command, Bytes::new());
                play(effects, streams).await;
                status = match end {
                    Ok(code) | Err(Halt::Exit(code)) => code,
                    Err(Halt::NotPlain) => {
                        streams
                            .write_error(format!("sh: {line}: not found\n"))
                            .await;
                        127
                    }
                };
                if line == "exit" || line.starts_with("exit ") {
                    return status;
                }
                if streams.tty() {
                    streams.write("/ # ").await;
                }
            }
        }
        status
    }

    /// What answers on a port of a pod: a program, or a page of the container that declares the port.
    async fn answer(
        self,
        pod: PodView,
        port: u16,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Refused> {
        let (parts, body) = request.into_parts();
        for id in &pod.running {
            let Some(container) = container_of(&pod.pod, &id.container) else {
                continue;
            };
            let image = container.image.as_deref().unwrap_or("");
            if let Some(program) = self.program(image) {
                let again = Request::from_parts(parts.clone(), body.clone());
                if let Some(answer) = program.http(id.clone(), port, again).await {
                    return Ok(answer);
                }
            } else if declares(container, port) {
                let text = format!(
                    "{} {}\npod {}, container {}, image {image} (simulated)\n",
                    parts.method, parts.uri, id.pod, id.container
                );
                return Ok(Response::new(Bytes::from(text)));
            }
        }
        Err(Refused(port))
    }

    /// Whether anything answers on a port of a pod.
    fn listens(&self, pod: &PodView, port: u16) -> bool {
        pod.running.iter().any(|id| {
            container_of(&pod.pod, &id.container).is_some_and(|container| {
                let image = container.image.as_deref().unwrap_or("");
                self.has_program(image) || declares(container, port)
            })
        })
    }
}

/// Waits until a program says that it uses more memory than its container may.
async fn out_of_memory(program: Option<&dyn Erased>, id: &ContainerId, limit: Option<u64>) {
    let (Some(program), Some(limit)) = (program, limit) else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(MEASURED_EVERY).await;
        let used = program
            .usage(id)
            .and_then(|usage| u64::try_from(usage.memory).ok());
        if used.is_some_and(|used| used > limit) {
            return;
        }
    }
}

/// Shows what a command does, in its time.
async fn play(effects: Vec<Effect>, streams: &Streams) {
    for effect in effects {
        match effect {
            Effect::Print(bytes) if streams.tty() => {
                let text = String::from_utf8_lossy(&bytes).replace('\n', "\r\n");
                streams.write(text).await;
            }
            Effect::Print(bytes) => streams.write(bytes).await,
            Effect::PrintError(text) => streams.write_error(text).await,
            Effect::Sleep(pause) => tokio::time::sleep(pause).await,
            Effect::Forever => std::future::pending().await,
        }
    }
}

fn is_interactive(command: &[String]) -> bool {
    let name = command
        .first()
        .map_or("", |name| name.rsplit('/').next().unwrap_or(name));
    matches!(name, "sh" | "bash" | "ash" | "dash") && !command.iter().any(|arg| arg == "-c")
}

/// Whether a command reads its input to the end.
fn reads(command: &[String]) -> bool {
    match command.first().map(String::as_str) {
        Some("tar") => command.get(1).is_some_and(|mode| mode.contains('x')),
        Some("cat") => command.len() == 1 || command.iter().any(|arg| arg == "-"),
        Some("sh") => command
            .get(2)
            .is_some_and(|script| script.contains("cat >") || script.contains("tar ")),
        _ => false,
    }
}

fn container_of<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    all.into_iter().find(|container| container.name == name)
}

fn declares(container: &Container, port: u16) -> bool {
    let ports = container.ports.iter().flatten();
    ports
        .into_iter()
        .any(|one| one.container_port == i32::from(port))
}

impl Runtime for Simulation {
    fn life(&self, _: &Pod, container: &Container) -> Life {
        let shell = || {
            let command = container
                .command
                .iter()
                .flatten()
                .chain(container.args.iter().flatten());
            let command: Vec<String> = command.cloned().collect();
            command.is_empty() || is_interactive(&command)
        };
        let image = container.image.as_deref().unwrap_or("");
        if self.has_program(image) || (container.stdin == Some(true) && shell()) {
            Life::Live
        } else {
            Life::Scripted
        }
    }

    fn pull(&self, image: ImagePull) -> BoxFuture<'static, Result<(), PullError>> {
        let checked = self.check(&image);
        async move { checked }.boxed()
    }

    fn start(
        &self,
        container: ContainerConfig,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, Exit>, StartError>> {
        let hooks = Hooks::of(&container);
        let process = Arc::new(Process {
            stopping: container.stopping.clone(),
            killed: CancellationToken::new(),
            hooks: hooks.clone(),
        });
        let simulation = self.clone();
        let (own, id) = (self.clone(), container.id.clone());
        own.0.live.lock().insert(id.clone(), process.clone());
        let program = self.program(container.container.image.as_deref().unwrap_or(""));
        let (log, spec) = (container.log.clone(), container.container.clone());
        let limit = container.limits.memory;
        let run = async move {
            let exit = tokio::select! {
                // A container that was killed does not get to say how it ends.
                biased;
                () = process.killed.cancelled() => Exit::killed(),
                () = out_of_memory(program.as_deref(), &id, limit) => Exit::out_of_memory(),
                exit = async {
                    match &program {
                        Some(program) => program.run(container).await,
                        None => {
                            container.stopped().await;
                            Exit::code(0)
                        }
                    }
                } => exit,
            };
            own.0.live.lock().remove(&id);
            termination::complete(exit, &spec, || log.lines())
        };
        let run = run.boxed();
        async move {
            Ok(match hooks {
                Some(hooks) => hooks.after_start(simulation, run).await,
                None => run,
            })
        }
        .boxed()
    }

    fn stop(&self, id: &ContainerId, grace: Duration) {
        let Some(process) = self.0.live.lock().get(id).cloned() else {
            return;
        };
        if grace.is_zero() {
            return process.killed.cancel();
        }
        if process.hooks.is_none() {
            process.stopping.cancel();
        }
        let own = self.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            if let Some(hooks) = &process.hooks {
                hooks.before_stop(&own, grace).await;
            }
            process.stopping.cancel();
            let left = grace
                .saturating_sub(begun.elapsed())
                .max(LEAST_GRACE.min(grace));
            tokio::time::sleep(left).await;
            process.killed.cancel();
        });
    }

    fn exec(
        &self,
        target: ExecTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<i32, ExecError>> {
        let own = self.clone();
        async move {
            let image = target.container.image.as_deref().unwrap_or("");
            Ok(match own.program(image) {
                Some(program) => program.exec(target, command, streams).await,
                None => own.shell(target, command, streams).await,
            })
        }
        .boxed()
    }

    fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
    ) -> BoxFuture<'static, Result<(), ExecError>> {
        let (own, id) = (self.clone(), id.clone());
        async move {
            let process = own.0.live.lock().get(&id).cloned();
            let process =
                process.ok_or_else(|| ExecError("the container does not run".to_owned()))?;
            let target = ExecTarget {
                id,
                pod: Arc::default(),
                container: Container::default(),
                env: Vec::new(),
                files: Vec::new(),
            };
            let mut streams = streams;
            own.converse(&target, &mut streams).await;
            // Whoever leaves the shell that a container runs ends the container.
            process.stopping.cancel();
            Ok(())
        }
        .boxed()
    }

    fn port_forward(
        &self,
        pod: PodView,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'static, Result<(), Refused>> {
        let own = self.clone();
        async move {
            if !own.listens(&pod, port) {
                return Err(Refused(port));
            }
            let answer = move |request| {
                let (own, pod) = (own.clone(), pod.clone());
                async move {
                    let answered = own.answer(pod, port, request).await;
                    answered.unwrap_or_else(|_| {
                        let mut refused = Response::new(Bytes::new());
                        *refused.status_mut() = http::StatusCode::BAD_GATEWAY;
                        refused
                    })
                }
                .boxed()
            };
            serve_http(stream, answer).await;
            Ok(())
        }
        .boxed()
    }

    fn http(
        &self,
        pod: PodView,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Refused>> {
        self.clone().answer(pod, port, request).boxed()
    }

    fn probe(&self, target: ExecTarget, kind: ProbeKind) -> BoxFuture<'static, Health> {
        let program = self.program(target.container.image.as_deref().unwrap_or(""));
        async move {
            match program {
                Some(program) => program.probe(target.id, kind).await,
                None => Health::Healthy,
            }
        }
        .boxed()
    }

    fn usage(&self, pod: &Pod, container: &str) -> Option<Usage> {
        let image = container_of(pod, container)?.image.as_deref()?;
        let status = pod.status.as_ref()?.container_statuses.as_ref()?;
        let status = status.iter().find(|status| status.name == container)?;
        let run = u32::try_from(status.restart_count).unwrap_or(0);
        let id = ContainerId::new(PodId::of(pod), container, run);
        self.program(image)?.usage(&id)
    }

    fn remove(&self, pod: &PodId) {
        self.0.files.lock().retain(|(owner, _), _| owner != pod);
        let mut live = self.0.live.lock();
        live.retain(|id, process| {
            let stays = id.pod != *pod;
            if !stays {
                process.killed.cancel();
            }
            stays
        });
    }

    fn fork(&self) -> Arc<dyn Runtime> {
        Arc::new(self.copy())
    }
}

impl Simulation {
    /// The same rules and files, from now on independent. What runs is not taken over: nodes start it again.
    pub(crate) fn copy(&self) -> Self {
        Self(Arc::new(Inner {
            rules: RwLock::new(self.0.rules.read().clone()),
            live: Mutex::default(),
            files: Mutex::new(self.0.files.lock().clone()),
        }))
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Simulation({} programs)",
            self.0.rules.read().programs.len()
        )
    }
}
