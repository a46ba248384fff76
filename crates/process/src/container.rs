//! A container that runs: its output, its input, how it is stopped and how it ended.

mod attach;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerEvents, ContainerId, Exit, LogWriter, StartError,
};
use tokio::sync::{Mutex, broadcast, mpsc, watch};

use crate::cgroup::Cgroup;
use crate::helper::message::{Ask, Identity, Launch};
use crate::meter::Meter;
use crate::session::{self, Call, Session};
use crate::streams::{Lines, Output, Sink};
use crate::terminal::Terminal;

/// How many requests to a helper may wait.
const WAITING: usize = 16;
/// How many pieces of output somebody who is attached may be behind.
const BEHIND: usize = 256;
/// How much of the end of the output a status may have.
const TAIL: usize = 2 << 10;
/// How long output is read on after the program and everything that it left have ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A piece of output.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Output(Bytes),
    Error(Bytes),
}

/// A container that runs, shared by all who do something with it.
#[derive(Debug)]
pub(crate) struct Running {
    asks: mpsc::Sender<Ask>,
    ended: watch::Receiver<bool>,
    pieces: broadcast::Sender<Piece>,
    /// Where input goes; one at a time may write.
    input: Arc<Mutex<Sink>>,
    terminal: Option<Arc<Terminal>>,
    pub(crate) id: ContainerId,
    /// What the pod says about the container.
    pub(crate) container: Container,
    pub(crate) events: ContainerEvents,
    pub(crate) address: Option<Ipv4Addr>,
    /// The process that is the helper.
    pub(crate) pid: i32,
    /// The first process in its namespaces, if it has some.
    pub(crate) init: Option<i32>,
    /// What commands in the container begin with.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) directory: String,
    pub(crate) identity: Identity,
    pub(crate) meter: Meter,
    cgroup: Option<Cgroup>,
    /// The limit of memory that nobody but us enforces.
    watched: Option<u64>,
    out_of_memory: AtomicBool,
}

/// What a container does besides being looked at: it has to be driven by somebody.
pub(crate) struct Life {
    session: Session,
    asked: mpsc::Receiver<Ask>,
    ended: watch::Sender<bool>,
    pieces: broadcast::Sender<Piece>,
    terminal: Option<Arc<Terminal>>,
    log: LogWriter,
}

/// Starts a container under a helper.
///
/// # Errors
/// Why it could not be started.
pub(crate) async fn start(
    call: &Call,
    mut launch: Launch,
    config: &ContainerConfig,
    cgroup: Option<Cgroup>,
) -> Result<(Arc<Running>, Life), StartError> {
    let failed = |error: &dyn std::fmt::Display| StartError(error.to_string());
    let container = &config.container;
    let (mut terminal, mut stdin, mut sink) = (None, None, Sink::Nowhere);
    if container.tty == Some(true) {
        let opened = Arc::new(Terminal::open().map_err(|e| failed(&e))?);
        launch.terminal = Some(opened.path.clone());
        if container.stdin == Some(true) {
            sink = Sink::Terminal(opened.clone());
        }
        terminal = Some(opened);
    } else if container.stdin == Some(true) {
        let (ours, theirs) = Sink::pipe().map_err(|e| failed(&e))?;
        (sink, stdin) = (ours, Some(theirs));
    }
    launch.groups = cgroup.iter().flat_map(Cgroup::members).collect();
    let session = Session::start(call, &launch, stdin).await;
    let session = session.map_err(|error| failed(&error))?;
    let (asks, asked) = mpsc::channel(WAITING);
    let (pieces, _) = broadcast::channel(BEHIND);
    let (ended, watched) = watch::channel(false);
    let running = Running {
        asks,
        ended: watched,
        pieces: pieces.clone(),
        input: Arc::new(Mutex::new(sink)),
        terminal: terminal.clone(),
        id: config.id.clone(),
        container: config.container.clone(),
        events: config.events.clone(),
        address: config.address,
        pid: session.pid,
        init: session.init,
        env: launch.env,
        directory: launch.directory,
        identity: match &launch.root {
            // The namespace that commands enter has one user, who they are then.
            Some(root) if root.user_namespace => Identity::default(),
            _ => launch.identity,
        },
        meter: Meter::default(),
        watched: config.limits.memory.filter(|_| cgroup.is_none()),
        cgroup,
        out_of_memory: AtomicBool::new(false),
    };
    let life = Life {
        session,
        asked,
        ended,
        pieces,
        terminal,
        log: config.log.clone(),
    };
    Ok((Arc::new(running), life))
}

impl Life {
    /// Lives until the program has ended, and says how, with the end of its output.
    pub(crate) async fn live(mut self) -> (Exit, String) {
        let Session {
            mut asks,
            reports,
            stdout,
            stderr,
            ..
        } = self.session;
        let record = Recorder {
            log: self.log,
            pieces: self.pieces,
            tail: parking_lot::Mutex::default(),
        };
        let output = async {
            match self.terminal {
                Some(terminal) => record.all(Output::Terminal(terminal), Piece::Output).await,
                None => {
                    let stdout = record.all(Output::Stdout(stdout), Piece::Output);
                    let stderr = record.all(Output::Stderr(stderr), Piece::Error);
                    tokio::join!(stdout, stderr);
                }
            }
        };
        let end = reports.end();
        tokio::pin!(output, end);
        let mut silent = false;
        let report = loop {
            tokio::select! {
                // Requests first: one that came before the end was meant for this run.
                biased;
                Some(ask) = self.asked.recv() => session::ask(&mut asks, ask).await,
                report = &mut end => break report,
                () = &mut output, if !silent => silent = true,
            }
        };
        if !silent {
            // Everything has ended, so its output ends as well, unless somebody else holds the other end.
            let _ = tokio::time::timeout(LAST_WORDS, &mut output).await;
        }
        self.ended.send_replace(true);
        let tail = record.tail.lock().clone();
        (Exit::code(session::exit_code(&report)), tail)
    }
}

/// Writes down what a container writes, and shows it to whoever is attached.
struct Recorder {
    log: LogWriter,
    pieces: broadcast::Sender<Piece>,
    /// The end of the output.
    tail: parking_lot::Mutex<String>,
}

impl Recorder {
    async fn all(&self, mut from: Output, piece: fn(Bytes) -> Piece) {
        let mut lines = Lines::default();
        while let Some(bytes) = from.next().await {
            self.take(&mut lines, bytes, piece);
        }
        self.print(&lines.finish());
    }

    fn print(&self, text: &str) {
        self.log.print(text);
        let mut tail = self.tail.lock();
        tail.push_str(text);
        let mut cut = tail.len().saturating_sub(TAIL);
        while !tail.is_char_boundary(cut) {
            cut += 1;
        }
        tail.drain(..cut);
    }

    fn take(&self, lines: &mut Lines, bytes: Bytes, piece: fn(Bytes) -> Piece) {
        let whole = lines.push(&bytes);
        if !whole.is_empty() {
            self.print(&whole);
        }
        // An error means that nobody is attached.
        let _ = self.pieces.send(piece(bytes));
    }
}

impl Running {
    /// Sends a signal to the program, or ends everything.
    pub(crate) fn ask(&self, ask: Ask) {
        // A full channel has the same request in it already; a closed one has nobody to ask.
        let _ = self.asks.try_send(ask);
    }

    /// The group that the kernel limits, if there is one.
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// The limit of memory that nobody but us enforces.
    pub(crate) fn watched(&self) -> Option<u64> {
        self.watched
    }

    /// It has used more memory than it may, and is ended for it.
    pub(crate) fn mark_out_of_memory(&self) {
        self.out_of_memory.store(true, Ordering::Release);
    }

    /// Whether it ended because it used more memory than it may.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let killed = self
            .cgroup
            .as_ref()
            .is_some_and(|group| group.oom_kills() > 0);
        killed || self.out_of_memory.load(Ordering::Acquire)
    }

    /// The hook that runs before the container is asked to end.
    pub(crate) fn pre_stop(&self) -> Option<&LifecycleHandler> {
        self.container.lifecycle.as_ref()?.pre_stop.as_ref()
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&self) {
        // An error means that whoever drove it has gone, and the process with that.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }
}
