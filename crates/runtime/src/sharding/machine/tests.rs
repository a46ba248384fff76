//! The rules, one fact at a time, with a server that is a map and a clock that is a number.

use std::time::Duration;

use super::*;

fn options(identity: &str) -> ShardingOptions {
    ShardingOptions::new("default", "operator", identity).shards(8)
}

/// An API server as far as leases go.
struct World {
    leases: BTreeMap<String, Lease>,
    revision: u64,
    now: Instant,
}

impl World {
    fn new() -> Self {
        Self {
            leases: BTreeMap::new(),
            revision: 0,
            now: Instant::now(),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn send(&mut self, action: Action) -> Seen {
        match action {
            Action::Rest => Seen::Turn,
            Action::List => Seen::Listed(self.leases.values().cloned().collect()),
            Action::Create(lease) if self.current(&lease).is_none() => self.put(*lease, None),
            Action::Update(lease) => match self.current(&lease) {
                Some(current) if member::version(&current) == member::version(&lease) => {
                    self.put(*lease, current.metadata.uid)
                }
                _ => Seen::Failed,
            },
            Action::Delete(lease) => match self.current(&lease) {
                Some(current) if member::version(&current) != member::version(&lease) => {
                    Seen::Failed
                }
                _ => {
                    self.leases.remove(member::name(&lease));
                    Seen::Deleted
                }
            },
            Action::Create(_) => Seen::Failed,
        }
    }

    fn current(&self, lease: &Lease) -> Option<Lease> {
        self.leases.get(member::name(lease)).cloned()
    }

    fn put(&mut self, mut lease: Lease, uid: Option<String>) -> Seen {
        self.revision += 1;
        lease.metadata.resource_version = Some(self.revision.to_string());
        lease.metadata.uid = uid.or_else(|| Some(format!("uid-{}", self.revision)));
        let name = member::name(&lease).to_owned();
        self.leases.insert(name, lease.clone());
        Seen::Written(Box::new(lease))
    }

    /// One whole turn.
    fn turn(&mut self, machine: &mut Machine) {
        let mut seen = Seen::Turn;
        loop {
            match machine.step(self.now, Timestamp::UNIX_EPOCH, seen) {
                Action::Rest => return,
                action => seen = self.send(action),
            }
        }
    }
}

fn held(machine: &Machine) -> Vec<u32> {
    let held = machine.holdings().iter();
    let held = held.filter(|(_, holding)| matches!(holding, Holding::Held { .. }));
    held.map(|(shard, _)| shard.0).collect()
}

fn drain(machine: &mut Machine) {
    let revoked = machine.holdings().clone();
    let revoked = revoked
        .iter()
        .filter(|(_, holding)| matches!(holding, Holding::Revoked { .. }));
    revoked.for_each(|(shard, _)| machine.drained(*shard));
}

#[test]
fn only_member_holds_every_shard_after_one_turn() {
    let (mut world, mut one) = (World::new(), Machine::new(options("one")));
    world.turn(&mut one);
    assert_eq!(held(&one), Vec::from_iter(0..8));
}

#[test]
fn shards_change_hands_only_after_their_work_has_ended() {
    let mut world = World::new();
    let (mut one, mut two) = (Machine::new(options("one")), Machine::new(options("two")));
    world.turn(&mut one);
    world.turn(&mut two);
    assert_eq!(
        held(&two),
        [] as [u32; 0],
        "all of them are in another lease"
    );
    world.turn(&mut one);
    assert_eq!(held(&one).len(), 4, "four are to be given up");
    world.turn(&mut two);
    assert_eq!(held(&two), [] as [u32; 0], "the work goes on");
    drain(&mut one);
    world.turn(&mut one);
    world.turn(&mut two);
    assert_eq!((held(&one).len(), held(&two).len()), (4, 4));
}

#[test]
fn tokens_rise_with_every_change_of_hands() {
    let mut world = World::new();
    let (mut one, mut two) = (Machine::new(options("one")), Machine::new(options("two")));
    world.turn(&mut one);
    let before = one.holdings().clone();
    world.turn(&mut two);
    world.turn(&mut one);
    drain(&mut one);
    world.turn(&mut one);
    world.turn(&mut two);
    for (shard, holding) in two.holdings() {
        let (Holding::Held { token: now }, Holding::Held { token: then }) =
            (*holding, before[shard])
        else {
            panic!("{shard:?} is held by both in turn: {holding:?}");
        };
        assert!(now > then);
    }
}

/// Both claim before either has looked: neither may believe that it is alone.
#[test]
fn of_two_claims_of_one_shard_none_holds() {
    let mut world = World::new();
    let mut machines = ["one", "two"].map(|name| Machine::new(options(name).shards(1)));
    // Both have joined, and have looked while the other one was not there.
    let mut writes = Vec::new();
    for machine in &mut machines {
        let mut seen = Seen::Turn;
        loop {
            let action = machine.step(world.now, Timestamp::UNIX_EPOCH, seen);
            match action {
                Action::Update(_) => {
                    writes.push(action);
                    break;
                }
                Action::List => {
                    let own =
                        |lease: &&Lease| Member::read(lease).identity == machine.options.identity;
                    seen = Seen::Listed(world.leases.values().filter(own).cloned().collect());
                }
                action => seen = world.send(action),
            }
        }
    }
    let written: Vec<Seen> = writes.into_iter().map(|write| world.send(write)).collect();
    for (machine, seen) in machines.iter_mut().zip(written) {
        assert_eq!(
            machine.step(world.now, Timestamp::UNIX_EPOCH, seen),
            Action::List
        );
        let seen = world.send(Action::List);
        machine.step(world.now, Timestamp::UNIX_EPOCH, seen);
        assert_eq!(held(machine), [] as [u32; 0]);
    }
    for _ in 0..3 {
        machines.iter_mut().for_each(|machine| world.turn(machine));
    }
    let holders = machines.iter().filter(|machine| held(machine).len() == 1);
    assert_eq!(holders.count(), 1, "one of them gets it in the end");
}

#[test]
fn shards_of_a_member_that_is_gone_are_free_when_its_lease_has_run_out() {
    let mut world = World::new();
    let (mut one, mut two) = (Machine::new(options("one")), Machine::new(options("two")));
    world.turn(&mut one);
    world.turn(&mut two);
    world.pass(14);
    world.turn(&mut two);
    assert_eq!(held(&two), [] as [u32; 0]);
    world.pass(1);
    world.turn(&mut two);
    assert_eq!(held(&two), Vec::from_iter(0..8));
    assert_eq!(one.deadline(), Some(world.now - Duration::from_secs(5)));
    world.turn(&mut one);
    assert!(one.is_lost(), "its lease is gone");
}

#[test]
fn write_whose_answer_was_lost_counts() {
    let mut world = World::new();
    let mut one = Machine::new(options("one"));
    let mut seen = Seen::Turn;
    loop {
        match one.step(world.now, Timestamp::UNIX_EPOCH, seen) {
            Action::Rest => break,
            action @ (Action::Create(_) | Action::Update(_)) => {
                world.send(action);
                seen = Seen::Failed;
            }
            action => seen = world.send(action),
        }
    }
    world.turn(&mut one);
    assert!(!one.is_lost());
    assert_eq!(held(&one), Vec::from_iter(0..8));
}

#[test]
fn lease_of_an_earlier_process_with_our_name_has_to_run_out() {
    let mut world = World::new();
    world.turn(&mut Machine::new(options("one")));
    let mut again = Machine::new(options("one"));
    world.turn(&mut again);
    assert_eq!((held(&again).len(), again.is_lost()), (0, false));
    world.pass(15);
    world.turn(&mut again);
    assert_eq!(held(&again).len(), 8);
}

#[test]
fn member_that_leaves_gives_up_everything_and_then_its_lease() {
    let mut world = World::new();
    let (mut one, mut two) = (Machine::new(options("one")), Machine::new(options("two")));
    world.turn(&mut one);
    world.turn(&mut two);
    one.leave();
    world.turn(&mut one);
    assert!(!one.has_left());
    drain(&mut one);
    world.turn(&mut one);
    assert!(one.has_left());
    world.turn(&mut two);
    assert_eq!(held(&two), Vec::from_iter(0..8));
}
