//! Starts the program of a container and stays beside it: forwards signals, reaps what it leaves, reports its end.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::message::{self, Ask, Identity, Launch, Report};
use super::{contain, descendants, root};

/// Signals that are passed on when the helper itself receives them.
const FORWARDED: [Signal; 6] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// What a helper answers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// A whole container: nothing outlives its program.
    Container,
    /// A command beside a container that has no namespaces. Nothing would end what it leaves in the background, so nothing
    /// outlives it.
    Command,
    /// A command in the namespaces of a container: `outside` is the process that made them, `init` the first one within.
    /// What it leaves in the background stays for as long as the container does.
    Within { outside: i32, init: i32 },
}

/// Runs what the socket on standard input asks for, until it has ended.
pub(super) fn run(scope: Scope) -> io::Result<()> {
    // A name of its own: whoever ends `kubewright` by name means the command.
    nix::sys::prctl::set_name(c"kw-init")?;
    if scope == Scope::Container {
        // The helper around the namespaces, if there is one, dies with the runtime.
        nix::sys::prctl::set_pdeathsig(outer_helper().then_some(Signal::SIGKILL))?;
    }
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut passed = message::receive_descriptors(&control)?.into_iter();
    let Some(launch) = message::read::<Launch>(&control)? else {
        return Ok(());
    };
    // A helper that already leads a session keeps it.
    let _ = nix::unistd::setsid();
    let reaps = !matches!(scope, Scope::Within { .. });
    nix::sys::prctl::set_child_subreaper(reaps)?;
    let signals = watch_signals()?;
    let program = match prepare_and_start(launch, passed.next(), scope) {
        Ok(Some(program)) => program,
        // Somebody only wanted to know whether it can be made.
        Ok(None) => return message::write(&control, &Report::Exited(0)),
        Err(error) => return message::write(&control, &Report::Failed(error.to_string())),
    };
    message::write(&control, &Report::Started)?;
    let pid = Pid::from_raw(i32::try_from(program.id()).unwrap_or(0));
    let ended = Supervisor {
        control: &control,
        signals: &signals,
        program: pid,
    }
    .watch();
    match (&ended, scope) {
        (_, Scope::Container | Scope::Command) => descendants::end_all(),
        // The runtime has gone or lost interest before the end.
        (Ok(None), Scope::Within { .. }) => {
            let _ = kill(pid, Signal::SIGKILL);
        }
        (_, Scope::Within { .. }) => {}
    }
    match ended? {
        Some(report) => message::write(&control, &report),
        None => Ok(()),
    }
}

/// Has all signals that matter arrive at a descriptor instead of interrupting.
fn watch_signals() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    for signal in FORWARDED {
        set.add(signal);
    }
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?)
}

/// Whether this is the first process of its pid namespace, started by another helper.
fn outer_helper() -> bool {
    std::process::id() == 1
}

/// Why the program of a container does not run, in the words of a container runtime.
#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error("joining {}: {why}", group.display())]
    Join { group: PathBuf, why: io::Error },
    #[error("{0}")]
    Files(io::Error),
    #[error("entering the namespaces of the container: {0}")]
    Enter(io::Error),
    #[error("{0}")]
    Program(String),
}

/// Makes the file system of a container and starts its program in it; nothing when no program was named.
///
/// # Errors
/// When a step of it fails.
fn prepare_and_start(
    mut launch: Launch,
    stdin: Option<OwnedFd>,
    scope: Scope,
) -> Result<Option<Child>, LaunchError> {
    for group in &launch.groups {
        // Whoever writes 0 means itself; the program is born into the group.
        let joined = fs::write(group, "0");
        let group = || group.clone();
        joined.map_err(|why| LaunchError::Join {
            group: group(),
            why,
        })?;
    }
    // Opened before the root changes, which has terminals of its own.
    let open = |path| OpenOptions::new().read(true).write(true).open(path);
    let terminal = launch.terminal.take().map(open).transpose();
    let terminal = terminal.map_err(LaunchError::Files)?;
    if let Some(root) = launch.root.take() {
        root::enter(&root).map_err(LaunchError::Files)?;
        if !root.machine {
            // Images may name a directory that they do not have, as container engines allow.
            fs::create_dir_all(&launch.directory).map_err(LaunchError::Files)?;
        }
        if root.user_namespace {
            become_user(&mut launch).map_err(LaunchError::Files)?;
        }
    }
    if let Scope::Within { outside, init } = scope {
        contain::enter(outside, init).map_err(LaunchError::Enter)?;
    }
    if launch.program.is_empty() {
        return Ok(None);
    }
    let started = start(&launch, stdin, terminal, scope);
    let failed = |error| LaunchError::Program(why(&launch, &error));
    started.map(Some).map_err(failed)
}

/// Takes the identity of the program in a user namespace within the container's. There is one user to map, so whoever
/// wants to be another than root is that one.
fn become_user(launch: &mut Launch) -> io::Result<()> {
    let identity = std::mem::take(&mut launch.identity);
    let (user, group) = (identity.user.unwrap_or(0), identity.group.unwrap_or(0));
    if (user, group) == (0, 0) {
        return Ok(());
    }
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)?;
    contain::map(user, group, 0, 0)
}

fn start(
    launch: &Launch,
    stdin: Option<OwnedFd>,
    terminal: Option<File>,
    scope: Scope,
) -> io::Result<Child> {
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.directory)
        .process_group(0);
    match &terminal {
        Some(terminal) => {
            command.stdin(terminal.try_clone()?);
            command.stdout(terminal.try_clone()?);
            command.stderr(terminal.try_clone()?);
        }
        None => {
            command.stdin(stdin.map_or_else(Stdio::null, Stdio::from));
        }
    }
    let child = match scope {
        // A process whose children are in another pid namespace cannot have threads, and this one is not needed as root.
        Scope::Within { .. } => {
            take_identity(&launch.identity)?;
            spawn(&mut command)?
        }
        Scope::Container | Scope::Command => in_its_identity(launch, command)?,
    };
    if let Some(terminal) = terminal {
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(0));
        // Without it the program has a terminal and no job control, which is better than nothing.
        let _ = nix::unistd::tcsetpgrp(&terminal, group);
    }
    Ok(child)
}

/// Starts a command as the user that it is for. A thread takes that identity and the child inherits it, while the
/// helper stays who it is.
fn in_its_identity(launch: &Launch, mut command: Command) -> io::Result<Child> {
    let identity = launch.identity.clone();
    let thread = std::thread::spawn(move || {
        take_identity(&identity)?;
        spawn(&mut command)
    });
    let spawned = thread.join();
    spawned.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
}

/// Starts a command with no signal blocked. A child inherits the mask of the thread that starts it, and this process blocks what it
/// reads from a descriptor: a program that does not clear the mask itself would never hear SIGTERM.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let blocked = SigSet::thread_get_mask()?;
    SigSet::empty().thread_set_mask()?;
    let child = command.spawn();
    blocked.thread_set_mask()?;
    child
}

/// Makes this thread the user and group that a program is for.
fn take_identity(identity: &Identity) -> io::Result<()> {
    if let Some(group) = identity.group {
        let groups = identity.groups.iter().copied();
        let groups: Vec<_> = groups.map(rustix::fs::Gid::from_raw).collect();
        rustix::thread::set_thread_groups(&groups)?;
        let group = rustix::fs::Gid::from_raw(group);
        rustix::thread::set_thread_res_gid(group, group, group)?;
    }
    if let Some(user) = identity.user {
        let user = rustix::fs::Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    Ok(())
}

/// Why a program could not be started, in the words of a container runtime.
fn why(launch: &Launch, error: &io::Error) -> String {
    let program = &launch.program;
    match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            format!("exec: {program:?}: stat {program}: no such file or directory")
        }
        io::ErrorKind::NotFound => {
            format!("exec: {program:?}: executable file not found in $PATH")
        }
        io::ErrorKind::PermissionDenied => format!("exec: {program:?}: permission denied"),
        _ => format!("exec: {program:?}: {error}"),
    }
}

/// A program that runs, and what is heard of it.
struct Supervisor<'a> {
    control: &'a UnixStream,
    signals: &'a SignalFd,
    program: Pid,
}

impl Supervisor<'_> {
    /// Waits until the program has ended, and returns how; nothing when the runtime has gone or wants everything ended.
    fn watch(&self) -> io::Result<Option<Report>> {
        // A program that ended while signals were not blocked left none to be read.
        if let Some(end) = self.reap()? {
            return Ok(Some(end));
        }
        loop {
            let mut watched = [
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut watched, PollTimeout::NONE) {
                Err(nix::errno::Errno::EINTR) => continue,
                result => result?,
            };
            let ready = |at: usize| watched[at].revents().is_some_and(|found| !found.is_empty());
            let (signalled, asked) = (ready(0), ready(1));
            if signalled && let Some(end) = self.take_signal()? {
                return Ok(Some(end));
            }
            if asked {
                match message::read::<Ask>(self.control) {
                    Ok(Some(Ask::Signal(number))) => self.send(number),
                    Ok(Some(Ask::Kill)) => self.send(Signal::SIGKILL as i32),
                    // The runtime is gone.
                    Ok(None) | Err(_) => return Ok(None),
                }
            }
        }
    }

    fn send(&self, number: i32) {
        if let Ok(signal) = Signal::try_from(number) {
            // It may have ended at this moment, which the next signal tells.
            let _ = kill(self.program, signal);
        }
    }

    fn take_signal(&self) -> io::Result<Option<Report>> {
        let Some(info) = self.signals.read_signal()? else {
            return Ok(None);
        };
        let number = i32::try_from(info.ssi_signo).unwrap_or(0);
        if number != Signal::SIGCHLD as i32 {
            self.send(number);
            return Ok(None);
        }
        self.reap()
    }

    /// Takes the ends of all children that have ended; returns that of the program.
    fn reap(&self) -> io::Result<Option<Report>> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.program => {
                    return Ok(Some(Report::Exited(code)));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.program => {
                    return Ok(Some(Report::Killed(signal as i32)));
                }
                Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::ECHILD) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
