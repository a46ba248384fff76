//! Processes of this machine: which there are below another, and signals to them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

/// Sends a signal, such as `KILL`, to processes. One that has ended already is not an error.
pub fn signal(name: &str, pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}"));
    kill.args(pids.iter().map(u32::to_string));
    if let Err(error) = kill.stderr(Stdio::null()).status() {
        println!("no signal can be sent: {error}");
    }
}

/// All processes below one, those nearest first.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        found.extend(children.get(&found[next]).into_iter().flatten());
        next += 1;
    }
    found.remove(0);
    found
}

/// The parent in a line of `/proc/PID/stat`: the second field after the name, which may have anything in it.
fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The command line of a process, word by word.
pub fn words(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = text.split('\0').map(str::to_owned);
    words.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_and_can_be_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        assert!(descendants(std::process::id()).contains(&child.id()));
        signal("KILL", &[child.id()]);
        let ended = child.wait().expect("it can be waited for");
        assert!(!ended.success());
    }

    #[test]
    fn name_of_a_process_may_have_parentheses() {
        assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
        assert_eq!(parent(""), None);
    }
}
