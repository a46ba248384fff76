//! Everything below a process, ended.

use std::collections::{BTreeMap, BTreeSet};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// How often descendants are looked for before giving up: each round ends all that there are.
const ROUNDS: usize = 1_000;

/// Ends everything that descends from this process, and waits until nothing does. Needs a process that orphans come
/// to: pid 1 of a namespace, or a subreaper.
pub(super) fn end_all() {
    let own = Pid::this();
    for _ in 0..ROUNDS {
        for pid in below(own.as_raw()) {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        loop {
            match waitpid(None, Some(WaitPidFlag::empty())) {
                Err(Errno::EINTR) => {}
                Err(_) => return,
                // Its children are ours now, and may be new.
                Ok(_) => break,
            }
        }
    }
}

/// The processes below one, by the parents that `/proc` names.
fn below(root: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for pid in crate::procfs::pids() {
        if let Some(stat) = crate::procfs::Stat::of(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let (mut found, mut next) = (BTreeSet::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if found.insert(*child) {
                next.push(*child);
            }
        }
    }
    found
}
