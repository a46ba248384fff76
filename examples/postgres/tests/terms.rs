//! The plan and the lease under everything that goes wrong: two operators at once, crashes, lost, late and doubled messages, and clocks
//! that go at another pace. At no moment do two members take writes, and no acknowledged commit is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kubewright_example_postgres::agent::lease::Lease;
use kubewright_example_postgres::plan::{Record, Step, View, Wanted, decide};
use kubewright_example_postgres::protocol::{Order, Report, Role, State};
use proptest::prelude::*;

const MEMBERS: [&str; 3] = ["db-0", "db-1", "db-2"];
const LEASE: Duration = Duration::from_secs(10);

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    /// Time passes, in tenths of a second.
    Pass(u64),
    /// An operator asks a member for its report.
    Ask(usize, usize),
    /// An operator reads the record.
    Read(usize),
    /// An operator decides, and its record is stored or its orders are on their way.
    Decide(usize),
    /// An order that is on its way arrives, and stays on its way if it is doubled.
    Arrive(usize, bool),
    /// All orders that are on their way get lost.
    Lose,
    /// An operator forgets everything.
    Restart(usize),
    /// An agent restarts; what it wrote down is there.
    Crash(usize),
    /// The members that take writes take one.
    Write,
    /// A member follows its primary.
    Stream(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1u64..40).prop_map(Event::Pass),
        8 => (0usize..2, 0usize..3).prop_map(|(o, m)| Event::Ask(o, m)),
        5 => (0usize..2).prop_map(Event::Read),
        8 => (0usize..2).prop_map(Event::Decide),
        10 => (0usize..12, any::<bool>()).prop_map(|(i, d)| Event::Arrive(i, d)),
        1 => Just(Event::Lose),
        1 => (0usize..2).prop_map(Event::Restart),
        1 => (0usize..3).prop_map(Event::Crash),
        5 => Just(Event::Write),
        6 => (0usize..3).prop_map(Event::Stream),
    ]
}

/// A member: its lease, its clock, its log.
struct Member {
    name: String,
    lease: Lease,
    /// Its clock goes at so many hundredths of the real one.
    pace: u64,
    order: Option<Order>,
    /// Commits in its log, as numbers, in their order.
    log: Vec<u64>,
    nonce: u64,
    /// Followers that have all of the log since the present list of waits is in force.
    confirmed: BTreeSet<String>,
}

/// An operator: what it knows.
#[derive(Default)]
struct Operator {
    record: Record,
    reports: BTreeMap<String, Report>,
    fencing_since: Option<(u64, Duration)>,
    broken_since: Option<Duration>,
}

struct World {
    now: Duration,
    stored: Record,
    version: u64,
    /// The version of the record that each operator read.
    read: [u64; 2],
    operators: [Operator; 2],
    members: Vec<Member>,
    flying: Vec<(usize, Order)>,
    acknowledged: BTreeSet<u64>,
    next: u64,
    synchronous: usize,
}

impl World {
    fn new(paces: [u64; 3], synchronous: usize) -> Self {
        let member = |(name, pace): (&str, u64)| Member {
            name: name.to_owned(),
            lease: Lease::default(),
            pace,
            order: None,
            log: Vec::new(),
            nonce: 0,
            confirmed: BTreeSet::new(),
        };
        Self {
            now: Duration::ZERO,
            stored: Record::default(),
            version: 0,
            read: [0; 2],
            operators: Default::default(),
            members: MEMBERS.into_iter().zip(paces).map(member).collect(),
            flying: Vec::new(),
            acknowledged: BTreeSet::new(),
            next: 1,
            synchronous,
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            members: MEMBERS.map(str::to_owned).to_vec(),
            preferred: None,
            synchronous: self.synchronous,
            lease: LEASE,
            patience: Duration::from_secs(2),
            parameters: BTreeMap::new(),
        }
    }

    fn local(&self, member: usize) -> Duration {
        let member = &self.members[member];
        Duration::from_micros((self.now.as_micros() as u64) * member.pace / 100)
    }

    fn writes(&self, member: usize) -> bool {
        self.members[member].lease.holds(self.local(member))
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Pass(tenths) => self.now += Duration::from_millis(tenths * 100),
            Event::Ask(operator, member) => self.ask(operator, member),
            Event::Read(operator) => {
                self.operators[operator].record = self.stored.clone();
                self.read[operator] = self.version;
            }
            Event::Decide(operator) => self.decide(operator),
            Event::Arrive(index, doubled) => self.arrive(index, doubled),
            Event::Lose => self.flying.clear(),
            Event::Restart(operator) => self.operators[operator] = Operator::default(),
            Event::Crash(member) => {
                let member = &mut self.members[member];
                let (term, stopped) = member.lease.record();
                member.lease = Lease::restore(term, stopped);
                member.order = None;
                member.confirmed.clear();
            }
            Event::Write => self.write(),
            Event::Stream(member) => self.stream(member),
        }
    }

    fn ask(&mut self, operator: usize, index: usize) {
        let now = self.local(index);
        let is_primary = self.writes(index);
        let member = &mut self.members[index];
        member.nonce += 1;
        // Unlike those of the other members and of earlier runs of the agent.
        let nonce = self.next * 1000 + member.nonce;
        self.next += 1;
        member.lease.remember(now, nonce);
        let (term, fenced) = member.lease.record();
        let follows =
            matches!(&member.order, Some(order) if matches!(order.role, Role::Replica { .. }));
        let report = Report {
            nonce,
            state: match (is_primary, follows) {
                (true, _) => State::Primary,
                (false, true) => State::Replica,
                (false, false) => State::Stopped,
            },
            term,
            fenced,
            revision: member.lease.revision(),
            has_data: true,
            position: member.log.len() as u64,
            synchronous: member.confirmed.iter().cloned().collect(),
            ..Report::default()
        };
        let name = member.name.clone();
        self.operators[operator].reports.insert(name, report);
        // The shell reads the record after the nonces: what was decided on an older one is not sent.
        self.read[operator] = 0;
    }

    fn decide(&mut self, index: usize) {
        if self.read[index] == 0 && self.version != 0 {
            return;
        }
        let (now, wanted) = (self.now, self.wanted());
        let operator = &mut self.operators[index];
        let term = operator.record.term;
        let since = operator.fencing_since.filter(|(known, _)| *known == term);
        let since = since.map_or(now, |(_, since)| since);
        operator.fencing_since = operator.record.fencing.then_some((term, since));
        let broken = operator.broken_since.get_or_insert(now);
        let view = View {
            reports: operator.reports.clone(),
            hosts: MEMBERS
                .map(|name| (name.to_owned(), name.to_owned()))
                .into(),
            fencing_for: now - since,
            broken_for: now - *broken,
        };
        match decide(&operator.record, &wanted, &view) {
            Step::Record(record) => {
                // The server refuses a change of what has changed.
                if self.read[index] == self.version {
                    operator.record = record.clone();
                    self.stored = record;
                    self.version += 1;
                    self.read[index] = self.version;
                }
            }
            Step::Order(orders) => {
                for (name, order) in orders {
                    let member = MEMBERS.iter().position(|it| *it == name).expect("a member");
                    self.flying.push((member, order));
                }
            }
        }
    }

    fn arrive(&mut self, index: usize, doubled: bool) {
        if self.flying.is_empty() {
            return;
        }
        let index = index % self.flying.len();
        let (member, order) = self.flying[index].clone();
        if !doubled {
            self.flying.remove(index);
        }
        let now = self.local(member);
        let member = &mut self.members[member];
        let before = member.lease.revision();
        if member.lease.obey(now, &order).is_ok() {
            if before != member.lease.revision()
                || member.order.as_ref().map(|o| o.term) != Some(order.term)
            {
                member.confirmed.clear();
            }
            member.order = Some(order);
        }
    }

    /// Each member that takes writes takes one, and acknowledges what those have that it waits for.
    fn write(&mut self) {
        for index in 0..MEMBERS.len() {
            if !self.writes(index) {
                continue;
            }
            let commit = self.next;
            self.next += 1;
            self.members[index].log.push(commit);
            self.acknowledge(index);
        }
    }

    fn acknowledge(&mut self, index: usize) {
        let Some(Order {
            role: Role::Primary { synchronous, .. },
            ..
        }) = self.members[index].order.clone()
        else {
            return;
        };
        if !self.writes(index) {
            return;
        }
        for commit in self.members[index].log.clone() {
            let has = |name: &String| {
                let member = self.members.iter().find(|member| member.name == *name);
                member.is_some_and(|member| member.log.contains(&commit))
            };
            if synchronous.iter().all(has) {
                self.acknowledged.insert(commit);
            }
        }
    }

    /// A member copies the log of the primary that it was ordered to follow, if that one takes writes in the same term.
    fn stream(&mut self, index: usize) {
        let Some(Order {
            role: Role::Replica { primary },
            term,
            ..
        }) = self.members[index].order.clone()
        else {
            return;
        };
        let source = MEMBERS
            .iter()
            .position(|it| *it == primary)
            .expect("a member");
        let is_its_term = self.members[source].lease.record().0 == term;
        if !self.writes(source) || !is_its_term {
            return;
        }
        self.members[index].log = self.members[source].log.clone();
        let name = self.members[index].name.clone();
        let order = self.members[source].order.clone();
        if matches!(order, Some(Order { role: Role::Primary { synchronous, .. }, .. }) if synchronous.contains(&name))
        {
            self.members[source].confirmed.insert(name);
        }
        self.acknowledge(source);
    }

    fn check(&self) {
        let primaries: Vec<usize> = (0..MEMBERS.len()).filter(|it| self.writes(*it)).collect();
        assert!(primaries.len() <= 1, "two take writes: {primaries:?}");
        if self.synchronous == 0 {
            return;
        }
        for primary in primaries {
            let log = &self.members[primary].log;
            let lost = self
                .acknowledged
                .iter()
                .find(|commit| !log.contains(commit));
            assert!(lost.is_none(), "{lost:?} is lost");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("POSTGRES_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
    ))]

    #[test]
    fn one_member_takes_writes_and_nothing_acknowledged_is_lost(
        events in prop::collection::vec(event(), 50..600),
        paces in [90u64..=110, 90u64..=110, 90u64..=110],
        synchronous in 0usize..=2,
    ) {
        let mut world = World::new(paces, synchronous);
        for event in events {
            world.happen(event);
            world.check();
        }
    }
}

/// Runs without faults, so that the property above is about something: terms do change and commits are acknowledged.
#[test]
fn lost_primary_is_followed_by_another_one() {
    let mut world = World::new([100, 100, 100], 1);
    let mut primaries = BTreeSet::new();
    let mut lost: Option<usize> = None;
    for round in 0..400 {
        for member in (0..3).filter(|member| Some(*member) != lost) {
            world.happen(Event::Ask(0, member));
        }
        if let Some(lost) = lost {
            world.operators[0].reports.remove(MEMBERS[lost]);
        }
        world.happen(Event::Read(0));
        world.happen(Event::Decide(0));
        while !world.flying.is_empty() {
            world.happen(Event::Arrive(0, false));
        }
        world.happen(Event::Write);
        for member in 0..3 {
            world.happen(Event::Stream(member));
        }
        let primary = (0..3).find(|member| world.writes(*member));
        if primary.is_some() {
            world.operators[0].broken_since = None;
        }
        primaries.extend(primary);
        if round % 100 == 99 {
            lost = primary;
        }
        world.happen(Event::Pass(5));
        world.check();
    }
    assert!(primaries.len() >= 2, "{primaries:?}");
    assert!(world.stored.term >= 3, "{:?}", world.stored);
    assert!(
        world.acknowledged.len() > 100,
        "{}",
        world.acknowledged.len()
    );
}
