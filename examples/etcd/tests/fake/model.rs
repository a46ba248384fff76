//! What etcd does with its members, without the data: lists, votes, learners, leaders, and what it refuses.

use std::collections::{BTreeMap, BTreeSet};

/// How long a learner takes to catch up, in seconds.
const CATCH_UP: i64 = 2;

/// A cluster of etcd.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) members: Vec<Member>,
    pub(crate) leader: Option<u64>,
    pub(crate) term: u64,
    pub(crate) revision: i64,
    /// The members that run, by id.
    pub(crate) running: BTreeMap<u64, Process>,
    /// What is on each volume: the member whose data it is.
    pub(crate) disks: BTreeMap<String, u64>,
    removed: BTreeSet<u64>,
    next: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) learner: bool,
    pub(crate) started: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Process {
    pub(crate) since: i64,
    pub(crate) version: String,
}

/// How a process of etcd is started.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    pub(crate) disk: &'a str,
    /// `--initial-cluster`, by name and sorted.
    pub(crate) peers: Vec<String>,
    /// `--initial-cluster-state`.
    pub(crate) state: &'a str,
    pub(crate) version: &'a str,
    pub(crate) now: i64,
}

impl Model {
    /// Starts a process, or says why it exits.
    pub(crate) fn start(&mut self, start: &Start<'_>) -> Result<u64, &'static str> {
        let id = match self.disks.get(start.disk) {
            // Flags about the initial cluster count only when there is no data.
            Some(id) => *id,
            None => self.first_start(start)?,
        };
        if self.removed.contains(&id) {
            return Err("the member has been permanently removed from the cluster");
        }
        self.disks.insert(start.disk.to_owned(), id);
        let version = start.version.to_owned();
        let process = Process {
            since: start.now,
            version,
        };
        self.running.insert(id, process);
        let name = start.name;
        let member = self.members.iter_mut().find(|member| member.id == id);
        member.expect("a member that is not removed").started = true;
        assert_eq!(self.member(id).map(|it| it.name.as_str()), Some(name));
        self.elect();
        Ok(id)
    }

    fn first_start(&mut self, start: &Start<'_>) -> Result<u64, &'static str> {
        if start.state == "new" {
            assert!(self.members.is_empty(), "a second bootstrap: {self:?}");
            return Ok(self.insert(start.name, false));
        }
        if !self.is_quorate() {
            return Err("cannot fetch cluster info from peer urls");
        }
        let mut names: Vec<String> = self.members.iter().map(|it| it.name.clone()).collect();
        names.sort();
        if names != start.peers {
            return Err("error validating peerURLs: member count is unequal");
        }
        let listed = self.members.iter().find(|it| it.name == start.name);
        let member = listed.ok_or("couldn't find local name in the initial cluster")?;
        assert!(!member.started, "{} lost its data and starts", start.name);
        Ok(member.id)
    }

    /// The process of a member ends.
    pub(crate) fn stop(&mut self, id: u64) {
        self.running.remove(&id);
        self.elect();
    }

    pub(crate) fn member(&self, id: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub(crate) fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.learner)
    }

    fn alive(&self) -> usize {
        self.voters()
            .filter(|it| self.running.contains_key(&it.id))
            .count()
    }

    /// Whether more than half of the voters run.
    pub(crate) fn is_quorate(&self) -> bool {
        self.alive() > self.voters().count() / 2
    }

    /// Adds a learner.
    pub(crate) fn add(&mut self, name: &str) -> Result<u64, &'static str> {
        self.check_quorum()?;
        if self.members.iter().any(|it| it.name == name) {
            return Err("etcdserver: Peer URLs already exists");
        }
        if self.members.iter().any(|it| it.learner) {
            return Err("etcdserver: too many learner members in cluster");
        }
        if self.alive() < self.voters().count() {
            return Err("etcdserver: unhealthy cluster");
        }
        Ok(self.insert(name, true))
    }

    pub(crate) fn promote(&mut self, id: u64, now: i64) -> Result<(), &'static str> {
        self.check_quorum()?;
        let learner = self.member(id).ok_or("etcdserver: member not found")?;
        if !learner.learner {
            return Err("etcdserver: can only promote a learner member");
        }
        let process = self.running.get(&id);
        if process.is_none_or(|it| it.since + CATCH_UP > now) {
            return Err(
                "etcdserver: can only promote a learner member which is in sync with leader",
            );
        }
        let member = self.members.iter_mut().find(|it| it.id == id);
        member.expect("it is there").learner = false;
        self.elect();
        Ok(())
    }

    /// Removes a member; its process ends. As etcd does, it refuses what would cost the quorum.
    pub(crate) fn remove(&mut self, id: u64) -> Result<(), &'static str> {
        self.check_quorum()?;
        let member = self.member(id).ok_or("etcdserver: member not found")?;
        if !member.learner && self.running.contains_key(&id) {
            let left = self.voters().count() - 1;
            if self.alive() - 1 < left / 2 + 1 {
                return Err("etcdserver: unhealthy cluster");
            }
        }
        self.members.retain(|it| it.id != id);
        self.removed.insert(id);
        self.stop(id);
        Ok(())
    }

    pub(crate) fn move_leader(&mut self, to: u64) -> Result<(), &'static str> {
        self.check_quorum()?;
        let target = self.member(to).filter(|it| !it.learner);
        target.ok_or("etcdserver: bad leader transferee")?;
        if self.running.contains_key(&to) && self.leader != Some(to) {
            self.leader = Some(to);
            self.term += 1;
        }
        Ok(())
    }

    fn check_quorum(&self) -> Result<(), &'static str> {
        if self.is_quorate() {
            return Ok(());
        }
        Err("etcdserver: request timed out")
    }

    fn insert(&mut self, name: &str, learner: bool) -> u64 {
        self.next += 1;
        let id = self.next * 1000 + 7;
        self.members.push(Member {
            id,
            name: name.to_owned(),
            learner,
            started: false,
        });
        id
    }

    fn elect(&mut self) {
        let lives = |id: &u64| self.running.contains_key(id);
        let is_voter = |id: u64| self.member(id).is_some_and(|it| !it.learner);
        if !self.is_quorate() {
            self.leader = None;
        } else if !self.leader.is_some_and(|id| lives(&id) && is_voter(id)) {
            let next = self.voters().map(|it| it.id).find(lives);
            self.leader = next;
            self.term += 1;
        }
    }
}
