//! Processes by number and by when they started, so that a number that was used again is not taken for the same process.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

/// A process: its number, and when it started in ticks of the machine's clock.
pub(crate) type Process = (i32, u64);

/// How long processes may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(15);

struct Stat {
    pid: i32,
    name: String,
    state: char,
    parent: i32,
    started: u64,
}

fn all() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(stat).collect()
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        pid,
        name: name.split_once('(')?.1.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Everything below a process; the names of those that are wanted alone.
pub(crate) fn below(root: i32, wanted: impl Fn(&str) -> bool) -> BTreeSet<Process> {
    let stats = all();
    let (mut found, mut next) = (BTreeSet::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for one in stats.iter().filter(|one| one.parent == parent) {
            next.push(one.pid);
            if wanted(&one.name) {
                found.insert((one.pid, one.started));
            }
        }
    }
    found
}

/// Those that still run.
pub(crate) fn still_there(processes: &BTreeSet<Process>) -> Vec<Process> {
    let running = |(pid, started): &&Process| {
        stat(*pid).is_some_and(|found| found.started == *started && found.state != 'Z')
    };
    processes.iter().filter(running).copied().collect()
}

/// Waits until none of the processes runs; says how many there were and how long it took.
pub(crate) async fn until_gone(processes: &BTreeSet<Process>) -> Result<String> {
    let begun = Instant::now();
    loop {
        let left = still_there(processes);
        if left.is_empty() {
            let took = begun.elapsed().as_millis();
            return Ok(format!(
                "0 of {} processes left after {took} ms",
                processes.len()
            ));
        }
        if begun.elapsed() > GONE_WITHIN {
            bail!(
                "{} of {} processes are left: {left:?}",
                left.len(),
                processes.len()
            );
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
