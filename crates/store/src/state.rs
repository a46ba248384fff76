//! The pure state machine: collections, revisions, history. Everything it needs comes in as arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::collection::CommitError;
use super::cursor::Expired;
use super::durable::Frozen;
use super::event::{Change, Event};
use super::history::{Entry, Excess, HistoryLimits, Log, Queue};
use super::pins::Pins;
use super::record::{Candidate, Record};
use super::root::Root;
use super::wakers::Wakers;

/// Events cut off per write: more than are added, few enough to keep the lock short.
const TRIM_PER_WRITE: usize = 64;

/// All collections at the present revision, and the past.
#[derive(Debug)]
pub(super) struct State {
    pub(super) revision: u64,
    /// Revision below which nothing is known of any collection. Some collections may know less.
    floor: u64,
    names: BTreeMap<Arc<str>, usize>,
    pub(super) tables: Vec<Table>,
    queue: Queue,
    limits: HistoryLimits,
    /// Every pin's revision is at or above the floor of its table, so pins keep little alive that the log does not.
    pub(super) pins: Mutex<Pins>,
}

/// One collection.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: Arc<str>,
    pub(super) root: Root,
    pub(super) log: Log,
    pub(super) wakers: Arc<Wakers>,
}

/// One write, rendered and waiting for its revision.
#[derive(Debug)]
pub(super) enum Step {
    Create {
        key: Arc<str>,
        candidate: Candidate,
    },
    Update {
        key: String,
        expected: u64,
        candidate: Candidate,
    },
    Delete {
        key: String,
        expected: u64,
    },
}

/// What a write did.
#[derive(Debug)]
pub(super) enum Applied {
    Changed(Arc<Event>),
    Unchanged(Arc<Record>),
}

impl State {
    /// Collections at a revision, with no past.
    pub(super) fn new(
        revision: u64,
        tables: impl IntoIterator<Item = (Arc<str>, Root)>,
        limits: HistoryLimits,
    ) -> Self {
        let mut state = Self {
            revision,
            floor: revision,
            names: BTreeMap::new(),
            tables: Vec::new(),
            queue: Queue::default(),
            limits,
            pins: Mutex::default(),
        };
        for (name, root) in tables {
            let table = state.table(&name);
            state.tables[table].root = root;
        }
        state
    }

    /// The objects of all collections and their past in a state of their own. Costs a pointer for each event of the
    /// past and nothing for the objects.
    pub(super) fn fork(&self) -> Self {
        let fork_table = |table: &Table| Table {
            name: table.name.clone(),
            root: table.root.clone(),
            log: table.log.clone(),
            wakers: Arc::default(),
        };
        Self {
            revision: self.revision,
            floor: self.floor,
            names: self.names.clone(),
            tables: self.tables.iter().map(fork_table).collect(),
            queue: self.queue.clone(),
            limits: self.limits,
            pins: Mutex::default(),
        }
    }

    /// Puts other objects in place of all that are here, at the next revision. The past is forgotten: every watch and
    /// page from before has expired. Hands out the objects that were here, to be freed without the lock.
    pub(super) fn restore(&mut self, from: Frozen) -> Vec<Root> {
        self.revision = self.revision.max(from.revision) + 1;
        self.floor = self.revision;
        self.queue = Queue::default();
        *self.pins.get_mut() = Pins::default();
        let mut gone = Vec::new();
        for table in &mut self.tables {
            gone.push(std::mem::take(&mut table.root));
            table.log.forget(self.revision);
        }
        for (name, root) in from.tables {
            let table = self.table(&name);
            self.tables[table].root = root;
        }
        gone
    }

    /// Everything as it is now.
    pub(super) fn freeze(&self) -> Frozen {
        let tables = self.tables.iter().map(|t| (t.name.clone(), t.root.clone()));
        Frozen {
            revision: self.revision,
            tables: tables.collect(),
        }
    }

    /// The number of a collection, which is created if need be.
    pub(super) fn table(&mut self, name: &str) -> usize {
        if let Some(table) = self.find(name) {
            return table;
        }
        let name: Arc<str> = name.into();
        self.names.insert(name.clone(), self.tables.len());
        self.tables.push(Table {
            name,
            root: Root::default(),
            log: Log::default(),
            wakers: Arc::default(),
        });
        self.tables.len() - 1
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The oldest revision of a collection that can be read or watched from.
    pub(super) fn floor(&self, table: usize) -> u64 {
        self.floor.max(self.tables[table].log.trimmed())
    }

    /// Fails for revisions that a collection has forgotten.
    pub(super) fn check_known(&self, table: usize, revision: u64) -> Result<(), Expired> {
        let oldest = self.floor(table);
        if revision < oldest {
            Err(Expired { oldest })
        } else {
            Ok(())
        }
    }

    /// What one write would do at the next revision. Nothing has changed until [`State::push`].
    pub(super) fn plan(&self, table: usize, step: Step) -> Result<Applied, CommitError> {
        let revision = self.revision + 1;
        let root = &self.tables[table].root;
        let event = match step {
            Step::Create { key, candidate } => create(root, key, candidate, revision)?,
            Step::Update {
                key,
                expected,
                candidate,
            } => {
                let current = find(root, &key, expected)?;
                if candidate.equals(current) {
                    return Ok(Applied::Unchanged(current.clone()));
                }
                update(current, candidate, revision)?
            }
            Step::Delete { key, expected } => delete(find(root, &key, expected)?, revision),
        };
        Ok(Applied::Changed(Arc::new(event)))
    }

    /// Does what was planned since the last change. The revision moves with it.
    pub(super) fn push(&mut self, table: usize, event: Arc<Event>, now: Timestamp) {
        let Table { root, log, .. } = &mut self.tables[table];
        match event.change() {
            Change::Deleted { .. } => drop(root.remove(event.record().key())),
            _ => root.insert(event.record().clone()),
        }
        self.revision = event.revision();
        self.queue.push(Entry {
            table,
            revision: event.revision(),
            at: now,
            cost: event.cost(),
        });
        log.push(event);
    }

    /// Forgets what came before a revision. The events go with the next [`State::trim`].
    pub(super) fn raise_floor(&mut self, revision: u64) {
        self.floor = self.floor.max(revision);
        self.drop_pins();
    }

    /// Cuts off a few of the events that exceed the limits and hands them out, so that the caller can free them
    /// without the lock. Empty when nothing is left to cut.
    pub(super) fn trim(&mut self, now: Timestamp) -> Vec<Arc<Event>> {
        let mut gone = Vec::new();
        while gone.len() < TRIM_PER_WRITE {
            let Some((entry, excess)) = self.queue.pop_excess(&self.limits, now, self.floor) else {
                break;
            };
            if excess == Excess::Age {
                self.floor = self.floor.max(entry.revision);
            }
            let event = self.tables[entry.table].log.pop();
            gone.push(event.expect("every entry of the queue has its event in a log"));
        }
        if !gone.is_empty() {
            self.drop_pins();
        }
        gone
    }

    fn drop_pins(&mut self) {
        let (floor, tables) = (self.floor, &self.tables);
        self.pins
            .get_mut()
            .retain(|table, revision| revision >= floor.max(tables[table].log.trimmed()));
    }
}

fn create(
    root: &Root,
    key: Arc<str>,
    candidate: Candidate,
    revision: u64,
) -> Result<Event, CommitError> {
    if let Some(current) = root.get(&key) {
        let current = current.clone();
        return Err(CommitError::AlreadyExists { current });
    }
    let (record, frame) = candidate.seal(key, revision, None);
    Ok(Event::new(Change::Created, Arc::new(record), frame))
}

fn find<'a>(root: &'a Root, key: &str, expected: u64) -> Result<&'a Arc<Record>, CommitError> {
    let current = root.get(key).ok_or(CommitError::NotFound)?;
    if current.revision != expected {
        let current = current.clone();
        return Err(CommitError::Conflict { current });
    }
    Ok(current)
}

fn update(
    current: &Arc<Record>,
    candidate: Candidate,
    revision: u64,
) -> Result<Event, CommitError> {
    if candidate.uid() != current.uid() {
        let reason = "an update cannot change the uid";
        return Err(CommitError::Rejected { reason });
    }
    let key = current.key.clone();
    let (record, frame) = candidate.seal(key, revision, Some(current.create_revision));
    let previous = current.clone();
    Ok(Event::new(
        Change::Updated { previous },
        Arc::new(record),
        frame,
    ))
}

fn delete(current: &Arc<Record>, revision: u64) -> Event {
    let (record, frame) = current.deleted_at(revision);
    let previous = current.clone();
    Event::new(Change::Deleted { previous }, Arc::new(record), frame)
}
