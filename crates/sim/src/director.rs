//! The director of a run: knows the plan, sees everything that happens, and decides where a fault happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kubewright_runtime::gate::{self, ReconcileId};
use kubewright_server::storage::Event;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::identity::{EventId, WriteId, content};
use crate::outage::{ATTEMPTS, Attempt, Outage};
use crate::pace::Pace;
use crate::plan::{Fault, Plan};
use crate::state::{ObjectId, State};
use crate::target::Target;
use crate::trace::{Entry, Note, Trace, Wrote};

/// More writes than these within one step are a flood.
const FLOOD: usize = 500;

/// A rule over the whole state that holds after every commit.
pub(crate) type Invariant = Arc<dyn Fn(&State) -> bool + Send + Sync>;
/// A rule about writes that the operator may not make.
pub(crate) type Forbidden = Arc<dyn Fn(&WriteId) -> bool + Send + Sync>;

/// What has to hold all the time.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) invariants: Vec<(String, Invariant)>,
    pub(crate) forbidden: Vec<(String, Forbidden)>,
}

pub(crate) struct Director {
    start: Instant,
    pub(crate) pace: Pace,
    rules: Rules,
    inner: Mutex<Inner>,
    state: Mutex<State>,
    /// Somebody has changed something.
    changed: Notify,
    /// The connections of the operator break.
    cut_off: Notify,
    /// Where the times of calls and events come from, if they differ.
    jitter: Option<Mutex<StdRng>>,
}

#[derive(Default)]
struct Inner {
    trace: Trace,
    step: usize,
    /// Writes of the operator since the step began.
    turns: usize,
    /// Faults that have not happened yet.
    faults: Vec<Fault>,
    writes: BTreeMap<WriteId, u32>,
    events: BTreeMap<EventId, u32>,
    revisions: BTreeMap<EventId, u64>,
    /// Objects that the operator made.
    made: BTreeSet<ObjectId>,
    /// When the operator last asked for anything or was shown anything.
    active: Option<Instant>,
    /// Whether the process that runs has begun to watch.
    is_up: bool,
    /// Leases that the operator writes, by key, and the process that took each last.
    leases: BTreeMap<String, Option<u32>>,
    /// Which processes took which lease at some time.
    led: BTreeSet<(u32, String)>,
    /// Resources whose lists and watches wait, until when and for which object.
    held: BTreeMap<String, Hold>,
    outage: Option<Outage>,
    /// When the last fault that has begun is over.
    disturbed: Option<Instant>,
    broken: Vec<Broken>,
}

#[derive(Clone)]
struct Hold {
    object: ObjectId,
    until: Instant,
}

/// How far a process of the operator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Up {
    Starting,
    Watching,
}

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    Invariant { name: String, after: ObjectId },
    Forbidden { name: String, write: WriteId },
    Panicked(String),
    Attempts { by: String },
}

impl Director {
    pub(crate) fn new(plan: &Plan, rules: Rules, pace: Pace) -> Self {
        let mut faults = plan.faults.clone();
        let mut seeds = faults.iter().filter_map(|fault| match fault {
            Fault::Jitter(seed) => Some(*seed),
            _ => None,
        });
        let jitter = seeds
            .next()
            .map(|seed| Mutex::new(StdRng::seed_from_u64(seed)));
        faults.retain(|fault| !matches!(fault, Fault::Jitter(_)));
        let inner = Inner {
            faults,
            ..Inner::default()
        };
        Self {
            start: Instant::now(),
            pace,
            rules,
            inner: Mutex::new(inner),
            state: Mutex::default(),
            changed: Notify::new(),
            cut_off: Notify::new(),
            jitter,
        }
    }

    /// Takes a random time, if the plan says so: mostly none, sometimes milliseconds, rarely seconds.
    pub(crate) async fn dawdle(&self) {
        let Some(random) = &self.jitter else { return };
        let time = {
            let mut random = random.lock();
            match random.random_range(0..20) {
                0 => random.random_range(100..3_000),
                1..=7 => random.random_range(1..50),
                _ => return,
            }
        };
        tokio::time::sleep(Duration::from_millis(time)).await;
    }

    /// Takes a change of the store in, under the store's lock.
    pub(crate) fn observe(&self, collection: &str, event: &Event) {
        let mut state = self.state.lock();
        let Some(changed) = state.apply(collection, event) else {
            return;
        };
        let rules = self.rules.invariants.iter();
        let broken: Vec<Broken> = rules
            .filter(|(_, holds)| !holds(&state))
            .map(|(name, _)| Broken::Invariant {
                name: name.clone(),
                after: changed.clone(),
            })
            .collect();
        drop(state);
        let mut inner = self.inner.lock();
        for rule in broken {
            if !inner.broken.iter().any(|known| known.is_same_rule(&rule)) {
                inner.broken.push(rule);
            }
        }
        let released = |_: &String, hold: &mut Hold| hold.object != changed;
        inner.held.retain(released);
        drop(inner);
        self.changed.notify_waiters();
    }

    pub(crate) fn state<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.state.lock())
    }

    /// Notes that the operator asked for something, or was shown something.
    pub(crate) fn be_active(&self) {
        self.inner.lock().active = Some(Instant::now());
    }

    /// When the operator last asked for anything or was shown anything.
    pub(crate) fn last_active(&self) -> Option<Instant> {
        self.inner.lock().active
    }

    /// Notes that a process begins, or that it has begun to watch.
    pub(crate) fn set_up(&self, is_up: Up) {
        self.inner.lock().is_up = is_up == Up::Watching;
    }

    /// Whether the process that runs has begun to watch.
    pub(crate) fn is_up(&self) -> bool {
        self.inner.lock().is_up
    }

    /// Begins a step of the workload.
    pub(crate) fn begin_step(&self, number: usize, name: &str) {
        {
            let mut inner = self.inner.lock();
            inner.step = number;
            inner.turns = 0;
        }
        self.note(Note::Step(name.to_owned()));
        while let Some(fault) = self.take(|fault| fault.during() == Some(name)) {
            self.inner.lock().outage = Outage::of(&fault);
            self.cut_off.notify_waiters();
        }
    }

    /// When the outage of this step and all other faults that have begun are over, if there were any.
    pub(crate) fn disturbed_until(&self) -> Option<Instant> {
        let inner = self.inner.lock();
        let outage = inner.outage.as_ref().map(Outage::until);
        outage.max(inner.disturbed)
    }

    /// Completes when an outage breaks connections.
    pub(crate) async fn cut_off(&self) {
        loop {
            let cut_off = self.cut_off.notified();
            if self
                .inner
                .lock()
                .outage
                .as_ref()
                .is_some_and(Outage::is_total)
            {
                return;
            }
            cut_off.await;
        }
    }

    /// Counts a call of the operator, if it fails because of an outage. Whoever tries too often has to wait, or the clock would
    /// never move.
    pub(crate) async fn attempt(&self, verb: &str, resource: &str) -> Option<Attempt> {
        let attempt = {
            let mut inner = self.inner.lock();
            let reconcile = gate::reconcile();
            let outage = inner.outage.as_mut()?;
            let attempt = outage.attempt(reconcile.as_ref(), verb, resource)?;
            if attempt.count == ATTEMPTS + 1 {
                let by = attempt.by.clone();
                inner.broken.push(Broken::Attempts { by });
            }
            attempt
        };
        if attempt.count > ATTEMPTS {
            tokio::time::sleep(self.pace.flooded_for).await;
        }
        Some(attempt)
    }

    /// Counts a write of the operator. After a flood of them within a step each takes a while: the clock stands still as long
    /// as anything can go on, and a loop that never waits would keep it so for ever.
    pub(crate) async fn take_turn(&self) {
        let turns = {
            let mut inner = self.inner.lock();
            inner.turns += 1;
            inner.turns
        };
        if turns > FLOOD {
            tokio::time::sleep(self.pace.flooded_for).await;
        }
    }

    pub(crate) fn note(&self, note: Note) {
        self.note_of(gate::reconcile(), note);
    }

    pub(crate) fn note_of(&self, reconcile: Option<ReconcileId>, note: Note) {
        let at = self.start.elapsed();
        let mut inner = self.inner.lock();
        if let Note::Reconciled(ended) = &note
            && ended.starts_with("reconcile panicked")
        {
            inner.broken.push(Broken::Panicked(ended.clone()));
        }
        let step = inner.step;
        inner.trace.entries.push(Entry {
            at,
            step,
            reconcile,
            note,
        });
    }

    /// Names a write that is about to be sent.
    pub(crate) fn name_write(&self, verb: &str, target: &Target, body: &[u8]) -> WriteId {
        let key = target.key(&written_name(target, body));
        let (key, content) = self.state(|state| {
            let generated = state.generated();
            let content = match verb {
                "delete" => 0,
                _ => content(body, generated),
            };
            (generated.alias(&key).into_owned(), content)
        });
        self.name_call(verb, &target.resource, key, content)
    }

    pub(crate) fn name_call(
        &self,
        verb: &str,
        resource: &str,
        key: String,
        content: u16,
    ) -> WriteId {
        let controller = gate::reconcile().map_or_else(|| "-".into(), |id| id.controller);
        let mut id = WriteId {
            controller: controller.to_string(),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            key,
            content,
            occurrence: 0,
        };
        let mut inner = self.inner.lock();
        let count = inner.writes.entry(id.clone()).or_default();
        *count += 1;
        id.occurrence = *count;
        let forbidden = self.rules.forbidden.iter();
        for (name, is_forbidden) in forbidden {
            if is_forbidden(&id) {
                let (name, write) = (name.clone(), id.clone());
                inner.broken.push(Broken::Forbidden { name, write });
            }
        }
        id
    }

    /// The fault that happens at a write, once.
    pub(crate) fn fault_at_write(&self, id: &WriteId) -> Option<Fault> {
        self.take(|fault| fault.write() == Some(id))
    }

    /// Names an event that is about to be delivered.
    pub(crate) fn name_event(
        &self,
        resource: &str,
        kind: &str,
        key: &str,
        revision: u64,
    ) -> EventId {
        let key = self.state(|state| state.generated().alias(key).into_owned());
        let mut id = EventId {
            resource: resource.to_owned(),
            kind: kind.to_owned(),
            key,
            occurrence: 0,
        };
        let mut inner = self.inner.lock();
        let count = inner.events.entry(id.clone()).or_default();
        *count += 1;
        id.occurrence = *count;
        inner.revisions.insert(id.clone(), revision);
        id
    }

    /// The fault that happens at an event, once.
    pub(crate) fn fault_at_event(&self, id: &EventId) -> Option<Fault> {
        self.take(|fault| fault.event() == Some(id))
    }

    /// The faults that happen after a step.
    pub(crate) fn faults_after(&self, step: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        while let Some(fault) = self.take(|fault| fault.step() == Some(step)) {
            faults.push(fault);
        }
        faults
    }

    fn take(&self, is_now: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let fault = {
            let mut inner = self.inner.lock();
            let at = inner.faults.iter().position(is_now)?;
            let fault = inner.faults.remove(at);
            let over = Instant::now() + self.pace.lasts(&fault);
            inner.disturbed = inner.disturbed.max(Some(over));
            fault
        };
        self.note(Note::Fault(fault.to_string()));
        Some(fault)
    }

    /// The revision of an event that was delivered.
    pub(crate) fn revision_of(&self, event: &EventId) -> Option<u64> {
        self.inner.lock().revisions.get(event).copied()
    }

    /// Faults that have not happened.
    pub(crate) fn unreached(&self) -> Vec<Fault> {
        self.inner.lock().faults.clone()
    }

    /// Notes a write and what it made.
    pub(crate) fn wrote(&self, wrote: Wrote) {
        if let Some(key) = &wrote.created {
            let resource = crate::target::plain(&wrote.id.resource).to_owned();
            self.inner.lock().made.insert((resource, key.clone()));
        }
        self.note(Note::Wrote(wrote));
    }

    /// Objects that the operator made and that are there.
    pub(crate) fn made(&self) -> Vec<ObjectId> {
        let made = self.inner.lock().made.clone();
        let is_there = |state: &State, id: &ObjectId| state.has(&id.0, &id.1);
        let there = |state: &State| made.into_iter().filter(|id| is_there(state, id)).collect();
        self.state(there)
    }

    /// Notes that a process wrote a lease; with its number if it holds the lease now.
    pub(crate) fn note_lease(&self, key: String, leader: Option<u32>) {
        let mut inner = self.inner.lock();
        if let Some(process) = leader {
            inner.led.insert((process, key.clone()));
        }
        let known = inner.leases.entry(key).or_default();
        *known = leader.or(*known);
    }

    /// Whether a process that begins a write has lost its lease to another one.
    pub(crate) fn check_leader(&self, process: u32, write: &WriteId) {
        let mut inner = self.inner.lock();
        let lost = inner.leases.iter().any(|(key, leader)| {
            leader.is_some_and(|leader| leader != process)
                && inner.led.contains(&(process, key.clone()))
        });
        if lost {
            let name = "a process that lost its lease writes".to_owned();
            let write = write.clone();
            inner.broken.push(Broken::Forbidden { name, write });
        }
    }

    pub(crate) fn leases(&self) -> Vec<String> {
        self.inner.lock().leases.keys().cloned().collect()
    }

    pub(crate) fn broken(&self) -> Vec<Broken> {
        self.inner.lock().broken.clone()
    }

    pub(crate) fn trace(&self) -> Trace {
        self.inner.lock().trace.clone()
    }

    /// Holds lists and watches of a resource until an object changes again, for a while at most.
    pub(crate) fn hold(&self, resource: &str, key: &str) {
        let hold = Hold {
            object: (resource.to_owned(), key.to_owned()),
            until: Instant::now() + self.pace.skipped_within,
        };
        self.inner.lock().held.insert(resource.to_owned(), hold);
    }

    /// Waits until lists and watches of a resource are not held.
    pub(crate) async fn released(&self, resource: &str) {
        loop {
            let changed = self.changed.notified();
            let held = self.inner.lock().held.get(resource).cloned();
            let Some(hold) = held else { return };
            if timeout_at(hold.until, changed).await.is_err() {
                self.inner.lock().held.remove(resource);
                return;
            }
        }
    }
}

impl Broken {
    fn is_same_rule(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Invariant { name, .. }, Self::Invariant { name: other, .. }) => name == other,
            _ => false,
        }
    }
}

/// The name that a write is about: of the path, or of the object to be created.
fn written_name(target: &Target, body: &[u8]) -> String {
    if let Some(name) = &target.name {
        return name.clone();
    }
    let object: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    let made = || text("generateName").map(|prefix| format!("{prefix}*"));
    text("name").or_else(made).unwrap_or_else(|| "*".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn write_of_a_process_that_lost_its_lease_is_forbidden() {
        let director = Director::new(&Plan::default(), Rules::default(), Pace::VIRTUAL);
        let write: WriteId = "a,create,pods,default/a,00ff#1".parse().expect("a write");
        director.note_lease("default/lease".to_owned(), Some(1));
        director.check_leader(1, &write);
        director.check_leader(2, &write);
        assert_eq!(director.broken(), []);
        director.note_lease("default/lease".to_owned(), Some(2));
        director.check_leader(2, &write);
        assert_eq!(director.broken(), []);
        director.check_leader(1, &write);
        assert!(matches!(&director.broken()[..], [Broken::Forbidden { .. }]));
    }
}
