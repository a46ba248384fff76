//! The processes that a runtime has started and that have not ended, on disk, so that whoever comes after it ends them.
//!
//! A process is named by its number and by when it started, because numbers are used again. What a container has left that is
//! in no file, such as a program whose helper was killed as well, is found by the session that the helper led, and by a variable in
//! its environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::ending;
use crate::procfs::Stat;
use crate::sessions;

/// The variable that says which runtime a process belongs to.
pub(crate) const MARK: &str = "KUBEWRIGHT_RUNTIME";
/// How often what is left is looked for before giving up; each round ends all that there is.
const ROUNDS: u32 = 20;

/// Where processes are written down, and for which runtime.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    pub(crate) directory: PathBuf,
    pub(crate) id: String,
}

/// A process that is written down until this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    path: PathBuf,
    /// The helper, and when it started.
    helper: (i32, u64),
}

impl Ledger {
    /// Writes down a helper that has just been started.
    pub(crate) fn enter(&self, pid: i32) -> Entry {
        let started = Stat::of(pid).map_or(0, |stat| stat.started);
        let entry = Entry {
            path: self.directory.join(pid.to_string()),
            helper: (pid, started),
        };
        entry.add(pid);
        entry
    }
}

impl Entry {
    /// Writes down another process: the first one in the namespaces of a container.
    pub(crate) fn add(&self, pid: i32) {
        let Some(stat) = Stat::of(pid) else {
            return;
        };
        let line = format!("{pid} {} {}\n", stat.started, boot());
        let file = fs::File::options()
            .create(true)
            .append(true)
            .open(&self.path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            tracing::warn!(%error, "a process could not be written down");
        }
    }
}

impl Entry {
    /// Ends what a helper has left that was killed: it is not there to do so itself.
    pub(crate) fn end_session(&self) {
        let (helper, started) = self.helper;
        if started > 0 {
            sessions::end(helper, started);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // One that is left names a process that is gone, which is seen when it is read.
        let _ = fs::remove_file(&self.path);
    }
}

/// Ends everything that a runtime has left, and waits until nothing is; returns how many processes there were.
pub(crate) fn end_all(directory: &Path, id: &str) -> usize {
    let mut ended = BTreeSet::new();
    for _ in 0..ROUNDS {
        let left: BTreeMap<i32, u64> = written(directory).into_iter().chain(marked(id)).collect();
        if left.is_empty() {
            break;
        }
        let pids: Vec<i32> = left.keys().copied().collect();
        ending::end(&pids, |pid, stat| left.get(&pid) == Some(&stat.started));
        ended.extend(pids);
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let _ = fs::remove_file(entry.path());
    }
    if !ended.is_empty() {
        tracing::info!(
            count = ended.len(),
            "processes of a cluster that was killed were ended"
        );
    }
    ended.len()
}

/// The processes of a ledger that still run, with their sessions, and when they started.
fn written(directory: &Path) -> Vec<(i32, u64)> {
    let boot = boot();
    let mut leaders = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        leaders.extend(text.lines().filter_map(|line| parse(line, &boot)));
    }
    let found = leaders.iter().filter(|(pid, started)| {
        let stat = Stat::of(**pid);
        stat.is_some_and(|stat| stat.started == **started && stat.state != 'Z')
    });
    let found: Vec<_> = found.map(|(pid, started)| (*pid, *started)).collect();
    found
        .into_iter()
        .chain(sessions::members(&leaders))
        .collect()
}

/// A line of the ledger, if it was written since the machine was started.
fn parse(line: &str, boot: &str) -> Option<(i32, u64)> {
    let mut words = line.split(' ');
    let (pid, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (pid > 1 && words.next() == Some(boot)).then_some((pid, started))
}

/// Tells one start of the machine from another: numbers of processes begin anew with each.
fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// The processes whose environment names a runtime, and when they started.
fn marked(id: &str) -> Vec<(i32, u64)> {
    let mark = format!("{MARK}={id}");
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found = Vec::new();
    for pid in crate::procfs::pids() {
        // Those of other users cannot be read, and are not ours.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let is_ours = variables.any(|variable| variable == mark.as_bytes());
        let running = Stat::of(pid).filter(|stat| stat.state != 'Z' && pid != own);
        if let Some(stat) = running.filter(|_| is_ours) {
            found.push((pid, stat.started));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(id: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").env(MARK, id);
        command.spawn().expect("it starts")
    }

    #[test]
    fn what_was_left_is_ended_and_others_are_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let id = format!("test-{}", std::process::id());
        let ledger = Ledger {
            directory: directory.path().to_owned(),
            id: id.clone(),
        };
        let (mut written, mut marked) = (sleeper("somebody"), sleeper(&id));
        let (mut other, mut reused) = (sleeper("else"), sleeper("else"));
        let number = |child: &Child| i32::try_from(child.id()).expect("in range");
        let entry = ledger.enter(number(&written));
        // A process that has the number of one that was written down, and is another.
        let line = format!("{} 1 {}", number(&reused), boot());
        fs::write(directory.path().join("1"), line).expect("written");
        let reap = std::thread::spawn(move || (written.wait(), marked.wait()));
        assert_eq!(end_all(directory.path(), &id), 2);
        let (first, second) = reap.join().expect("joined");
        assert!(!first.expect("ended").success() && !second.expect("ended").success());
        drop(entry);
        for child in [&mut other, &mut reused] {
            assert!(child.try_wait().expect("asked").is_none());
            child.kill().expect("killed");
            child.wait().expect("reaped");
        }
    }
}
