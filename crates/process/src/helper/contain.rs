//! Namespaces: made for a container, or entered for a command in one.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{getegid, geteuid};

use super::message::{self, Report};

/// Makes namespaces and has another helper be the first process in them: what it starts ends with it, by the kernel's
/// hand. Stays until it has ended, or until the runtime has gone.
pub(super) fn contain(user: Users, subcommand: Option<&str>) -> io::Result<()> {
    nix::sys::prctl::set_name(c"kw-contain")?;
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    if user == Users::Own {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let failed = |error: io::Error| {
        let text = format!("namespaces: {error}");
        message::write(&control, &Report::Failed(text))
    };
    if let Err(error) = unshare(flags) {
        return failed(error.into());
    }
    if user == Users::Own
        && let Err(error) = map(0, 0, uid, gid)
    {
        return failed(error);
    }
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
    let mut init = Command::new("/proc/self/exe")
        .args(subcommand)
        .arg("supervise")
        .stdin(Stdio::inherit())
        .spawn()?;
    message::write(&control, &Report::Contained(init.id()))?;
    let mut watched = [
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        // Only its end matters: what is said on it is for the one within.
        PollFd::new(control.as_fd(), PollFlags::empty()),
    ];
    loop {
        match poll(&mut watched, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            result => result?,
        };
        if watched[1].revents().is_some_and(|found| !found.is_empty()) {
            init.kill()?;
            init.wait()?;
            return Ok(());
        }
        signals.read_signal()?;
        if init.try_wait()?.is_some() {
            return Ok(());
        }
    }
}

/// Whether containers have a user namespace of their own, which whoever is not root needs for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Users {
    /// Those of the machine.
    Machine,
    Own,
}

/// Maps one user and group of the namespace outside to this process's new user namespace.
pub(super) fn map(uid: u32, gid: u32, outer_uid: u32, outer_gid: u32) -> io::Result<()> {
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
        // Where it was denied further out, it is denied here.
        _ => {}
    }
    fs::write("/proc/self/uid_map", format!("{uid} {outer_uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {outer_gid} 1"))
}

/// Enters the namespaces of a container. `outside` is the process that made them, `init` the first one within.
pub(super) fn enter(outside: i32, init: i32) -> io::Result<()> {
    let open = |pid: i32, name: &str| File::open(format!("/proc/{pid}/ns/{name}"));
    let own = |name: &str| fs::read_link(format!("/proc/self/ns/{name}"));
    // All are opened first: after the first step `/proc` may be another.
    let maker = open(outside, "user")?;
    let same_user = fs::read_link(format!("/proc/{outside}/ns/user"))? == own("user")?;
    let nested = fs::read_link(format!("/proc/{init}/ns/user"))?
        != fs::read_link(format!("/proc/{outside}/ns/user"))?;
    let others = [
        (open(init, "pid")?, CloneFlags::CLONE_NEWPID),
        (open(init, "uts")?, CloneFlags::CLONE_NEWUTS),
        (open(init, "ipc")?, CloneFlags::CLONE_NEWIPC),
        (open(init, "mnt")?, CloneFlags::CLONE_NEWNS),
    ];
    let inner = open(init, "user")?;
    if !same_user {
        setns(&maker, CloneFlags::CLONE_NEWUSER)?;
    }
    for (namespace, kind) in &others {
        setns(namespace, *kind)?;
    }
    if nested {
        setns(&inner, CloneFlags::CLONE_NEWUSER)?;
    }
    Ok(())
}
