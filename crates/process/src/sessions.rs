//! What helpers that were killed have left, by the sessions that they led.
//!
//! A helper leads a session, and its program and most of what that starts are members of it, also when the helper is gone. That
//! finds them where their environment cannot be read: in a user namespace beside ours.

use std::collections::{BTreeMap, BTreeSet};

use crate::ending;
use crate::procfs::{Stat, pids};

/// The members of sessions and everything below them, with when they started. Leaders are given with when they started: if
/// another process has the number by now, the session has ended.
pub(crate) fn members(leaders: &BTreeMap<i32, u64>) -> Vec<(i32, u64)> {
    let own = std::process::id().cast_signed();
    let all = pids().into_iter().filter(|pid| *pid != own);
    let all: BTreeMap<i32, Stat> = all.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect();
    let is_member = |stat: &Stat| {
        let Some(started) = leaders.get(&stat.session) else {
            return false;
        };
        let leader = all.get(&stat.session);
        stat.started >= *started && leader.is_none_or(|leader| leader.started == *started)
    };
    let mut found: BTreeSet<i32> = BTreeSet::new();
    let mut next: Vec<i32> = all
        .iter()
        .filter(|(_, stat)| is_member(stat))
        .map(|(pid, _)| *pid)
        .collect();
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            let below = all.iter().filter(|(_, stat)| stat.parent == pid);
            next.extend(below.map(|(pid, _)| *pid));
        }
    }
    let running = found.into_iter().filter(|pid| all[pid].state != 'Z');
    running.map(|pid| (pid, all[&pid].started)).collect()
}

/// Ends what is left of the session of a helper that has ended without doing so itself.
pub(crate) fn end(leader: i32, started: u64) {
    let leaders = BTreeMap::from([(leader, started)]);
    // What a member started after it was looked at is found the second time, at the latest.
    for _ in 0..2 {
        let left: BTreeMap<i32, u64> = members(&leaders).into_iter().collect();
        let pids: Vec<i32> = left.keys().copied().collect();
        ending::end(&pids, |pid, stat| left.get(&pid) == Some(&stat.started));
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    /// A session whose leader has a child, which has two: one of them has left the session.
    fn session() -> Child {
        let script = "sh -c 'sleep 1000 & setsid sleep 1000 & wait' & wait";
        let mut command = Command::new("setsid");
        let child = command.args(["sh", "-c", script]).spawn();
        child.expect("it starts")
    }

    /// Waits until all four run, and gives when the leader started.
    async fn until_complete(leader: i32) -> u64 {
        let late = Instant::now() + Duration::from_secs(30);
        loop {
            let started = Stat::of(leader).expect("it runs").started;
            let members = members(&BTreeMap::from([(leader, started)]));
            let sleeps = members.iter().filter(|(pid, _)| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
                name.is_ok_and(|name| name == "sleep\n")
            });
            if members.len() == 4 && sleeps.count() == 2 {
                return started;
            }
            assert!(Instant::now() < late, "last seen: {members:?}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn what_a_leader_left_is_found_and_ended() {
        let mut leader = session();
        let pid = leader.id().cast_signed();
        let started = until_complete(pid).await;
        leader.kill().expect("killed");
        leader.wait().expect("reaped");
        let leaders = BTreeMap::from([(pid, started)]);
        assert_eq!(members(&leaders).len(), 3);
        end(pid, started);
        assert_eq!(members(&leaders), []);
    }

    #[tokio::test]
    async fn session_of_another_process_with_the_number_is_left_alone() {
        let mut leader = session();
        let pid = leader.id().cast_signed();
        let started = until_complete(pid).await;
        let other = BTreeMap::from([(pid, started - 1)]);
        assert_eq!(members(&other), [], "the number was used again");
        let later = BTreeMap::from([(pid, started + 1_000_000)]);
        assert_eq!(members(&later), [], "they were there before");
        leader.kill().expect("killed");
        leader.wait().expect("reaped");
        end(pid, started);
    }
}
