//! Decides who is primary. Pure: what is on record and what members report goes in, one step comes out.
//!
//! A step either changes the record, which is the status of the PostgresCluster, or orders members; never both, so that every order
//! follows a record that is stored. The record has a term: there is one primary to a term. A term ends with `fencing`: from that
//! record on nobody grants its primary a lease, and the next term begins when the primary has confirmed that it stopped, or when
//! every lease that it can have has run out.
//!
//! With synchronous replication the record has a list of members that commits wait for, with a revision, and which of them have every
//! acknowledged commit. A member is known to have everything when the primary says so under the revision that is on record, and
//! is off the record before the primary learns of another list. Only such a member takes over.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::protocol::{Order, Report, Role, State};

/// What is on record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The term. Zero before there was one.
    pub term: u64,
    /// The primary of the term.
    pub primary: Option<String>,
    /// The term ends: its primary gets no lease any more.
    pub fencing: bool,
    /// There was a database. A new one is never made any more.
    pub initialized: bool,
    /// Members that a commit waits for.
    pub waits: Vec<String>,
    /// Grows whenever `waits` changes.
    pub revision: u64,
    /// Those of `waits` that have every acknowledged commit.
    pub synchronous: Vec<String>,
}

/// What the user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The members in their order.
    pub members: Vec<String>,
    /// Who should be primary, if anybody in particular.
    pub preferred: Option<String>,
    /// How many replicas a commit waits for.
    pub synchronous: usize,
    /// How long a lease lasts by the clock of the member.
    pub lease: Duration,
    /// How long a primary may be out of order before another one takes over.
    pub patience: Duration,
    /// The settings of the databases.
    pub parameters: BTreeMap<String, String>,
}

/// What is seen of the members at this moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// What each member reports. One that does not answer is not in here.
    pub reports: BTreeMap<String, Report>,
    /// The host of each member, as others reach it.
    pub hosts: BTreeMap<String, String>,
    /// How long this process has known that the term ends.
    pub fencing_for: Duration,
    /// How long this process has known that the primary is out of order.
    pub broken_for: Duration,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The record changes.
    Record(Record),
    /// Members get orders.
    Order(BTreeMap<String, Order>),
}

/// How much longer than a lease is waited: for clocks that go at another pace, up to a quarter.
pub fn fencing_time(lease: Duration) -> Duration {
    lease + lease / 4 + Duration::from_millis(100)
}

/// Decides what is to be done next.
pub fn decide(record: &Record, wanted: &Wanted, view: &View) -> Step {
    let Some(primary) = &record.primary else {
        return begin(record, wanted);
    };
    if record.fencing {
        return fence(record, primary, wanted, view);
    }
    let changed = initialized(record, primary, view)
        .or_else(|| rewaited(record, primary, wanted, view))
        .or_else(|| with_confirmed(record, primary, view))
        .or_else(|| ending(record, primary, wanted, view));
    match changed {
        Some(record) => Step::Record(record),
        None => Step::Order(orders(record, primary, wanted, view)),
    }
}

/// The first term, of the first member.
fn begin(record: &Record, wanted: &Wanted) -> Step {
    match wanted.members.first() {
        Some(first) => Step::Record(Record {
            term: record.term + 1,
            primary: Some(first.clone()),
            ..record.clone()
        }),
        None => Step::Order(BTreeMap::new()),
    }
}

fn initialized(record: &Record, primary: &str, view: &View) -> Option<Record> {
    let is_up = is_primary(record, primary, view);
    (is_up && !record.initialized).then(|| Record {
        initialized: true,
        ..record.clone()
    })
}

/// Changes the list of members that a commit waits for: those that do not follow while another one does, and those that are not
/// wanted, give way. Whoever leaves the list is not known to have everything from that record on, before the primary learns of it.
fn rewaited(record: &Record, primary: &str, wanted: &Wanted, view: &View) -> Option<Record> {
    let waits = waited_for(record, primary, wanted, view);
    if waits == record.waits {
        return None;
    }
    let mut synchronous = record.synchronous.clone();
    synchronous.retain(|name| waits.contains(name));
    Some(Record {
        waits,
        revision: record.revision + 1,
        synchronous,
        ..record.clone()
    })
}

/// Puts members on record that the primary knows to have everything.
fn with_confirmed(record: &Record, primary: &str, view: &View) -> Option<Record> {
    let report = view.reports.get(primary)?;
    if !is_primary(record, primary, view) || report.revision != record.revision {
        return None;
    }
    let confirmed = |name: &&String| report.synchronous.contains(name);
    let known: Vec<String> = record.waits.iter().filter(confirmed).cloned().collect();
    let is_news = known.iter().any(|name| !record.synchronous.contains(name));
    is_news.then(|| Record {
        synchronous: record
            .waits
            .iter()
            .filter(|name| known.contains(name) || record.synchronous.contains(name))
            .cloned()
            .collect(),
        ..record.clone()
    })
}

/// Ends the term when its primary is out of order for too long, or somebody else is preferred, and there is somebody to take over.
fn ending(record: &Record, primary: &str, wanted: &Wanted, view: &View) -> Option<Record> {
    let others = candidates(record, primary, wanted, view);
    let is_up = is_primary(record, primary, view);
    let preferred = wanted.preferred.as_ref();
    let switch_over = is_up && preferred.is_some_and(|name| others.contains(&name));
    let fail_over = !is_up && view.broken_for >= wanted.patience && !others.is_empty();
    (record.initialized && (switch_over || fail_over)).then(|| Record {
        fencing: true,
        ..record.clone()
    })
}

/// Waits until the primary of the term cannot take writes any more, then begins the next one.
fn fence(record: &Record, primary: &str, wanted: &Wanted, view: &View) -> Step {
    let old = view.reports.get(primary);
    let has_stopped = old.is_some_and(|report| report.term == record.term && report.fenced);
    if !has_stopped && view.fencing_for < fencing_time(wanted.lease) {
        return Step::Order(stop(record, primary, wanted, view));
    }
    match successor(record, primary, wanted, view) {
        Some(next) => Step::Record(Record {
            term: record.term + 1,
            primary: Some(next.to_owned()),
            fencing: false,
            // The new primary has yet to find out who has everything.
            synchronous: Vec::new(),
            waits: Vec::new(),
            revision: record.revision + 1,
            initialized: true,
        }),
        None => Step::Order(stop(record, primary, wanted, view)),
    }
}

/// Who comes next: the preferred one, or who has most; the old primary if there is nobody else.
fn successor<'a>(
    record: &Record,
    primary: &'a str,
    wanted: &'a Wanted,
    view: &View,
) -> Option<&'a str> {
    let others = candidates(record, primary, wanted, view);
    let preferred = wanted.preferred.as_ref();
    if let Some(name) = others.iter().find(|name| Some(**name) == preferred) {
        return Some(name);
    }
    let position = |name: &&&String| view.reports.get(**name).map(|report| report.position);
    if let Some(best) = others.iter().max_by_key(position) {
        return Some(best);
    }
    let is_back = view.reports.get(primary).is_some_and(|it| it.has_data);
    is_back.then_some(primary)
}

/// Members that may take over: those that answer, have a database, and with synchronous replication every acknowledged commit.
fn candidates<'a>(
    record: &Record,
    primary: &str,
    wanted: &'a Wanted,
    view: &View,
) -> Vec<&'a String> {
    let may = |name: &&String| {
        let report = view.reports.get(*name);
        // Of another term its position says nothing: it may have followed somebody else.
        let is_fit = report.is_some_and(|report| {
            report.has_data && report.term == record.term && report.state != State::Busy
        });
        is_fit && (wanted.synchronous == 0 || record.synchronous.contains(name))
    };
    replicas(primary, wanted).filter(may).collect()
}

fn replicas<'a>(primary: &str, wanted: &'a Wanted) -> impl Iterator<Item = &'a String> {
    wanted.members.iter().filter(move |name| *name != primary)
}

/// Whether the primary is what it should be.
fn is_primary(record: &Record, primary: &str, view: &View) -> bool {
    let report = view.reports.get(primary);
    report.is_some_and(|report| report.state == State::Primary && report.term == record.term)
}

/// The primary stops; the others go on following it, in vain, so that they keep what they have.
fn stop(record: &Record, primary: &str, wanted: &Wanted, view: &View) -> BTreeMap<String, Order> {
    let mut orders = BTreeMap::new();
    if view.reports.contains_key(primary) {
        let order = order(record, wanted, view, primary, Role::Stop);
        orders.insert(primary.to_owned(), order);
    }
    orders
}

/// The primary gets a lease, the others follow it.
fn orders(record: &Record, primary: &str, wanted: &Wanted, view: &View) -> BTreeMap<String, Order> {
    let mut orders = BTreeMap::new();
    for name in &wanted.members {
        let Some(report) = view.reports.get(name) else {
            continue;
        };
        let role = if name == primary {
            // Without a database it would have to be made, and there was one.
            if record.initialized && !report.has_data && report.state == State::Stopped {
                continue;
            }
            Role::Primary {
                nonce: report.nonce,
                lease_millis: millis(wanted.lease),
                synchronous: record.waits.clone(),
                revision: record.revision,
                bootstrap: !record.initialized,
            }
        } else {
            match view.hosts.get(primary) {
                Some(host) if is_primary(record, primary, view) => Role::Replica {
                    primary: host.clone(),
                },
                _ => continue,
            }
        };
        orders.insert(name.clone(), order(record, wanted, view, name, role));
    }
    orders
}

fn order(record: &Record, wanted: &Wanted, view: &View, name: &str, role: Role) -> Order {
    Order {
        term: record.term,
        role,
        parameters: wanted.parameters.clone(),
        restart: restart(record, wanted, view, name),
    }
}

/// The restart that a member should have done: one more than it has if it is the one whose turn it is. Settings that need a restart
/// get it one member at a time, replicas first, while all members are up.
fn restart(record: &Record, wanted: &Wanted, view: &View, name: &str) -> i64 {
    let done = view.reports.get(name).map_or(0, |report| report.restart);
    let is_up = |name: &&String| {
        let report = view.reports.get(*name);
        report.is_some_and(|it| matches!(it.state, State::Primary | State::Replica))
    };
    if !wanted.members.iter().all(|name| is_up(&name)) {
        return done;
    }
    let is_pending = |name: &&String| {
        let report = view.reports.get(*name);
        report.is_some_and(|report| !report.pending_restart.is_empty())
    };
    let primary = record.primary.as_ref();
    let replicas = wanted.members.iter().filter(|it| Some(*it) != primary);
    let turn = replicas.chain(primary).find(is_pending);
    done + i64::from(turn.is_some_and(|turn| turn == name))
}

/// Whom a commit should wait for: as many as wanted, those that follow first, and of these the ones that it waits for already. Never
/// fewer, so that no commit is acknowledged that one member alone has.
fn waited_for(record: &Record, primary: &str, wanted: &Wanted, view: &View) -> Vec<String> {
    let follows = |name: &String| {
        let report = view.reports.get(name);
        report.is_some_and(|report| report.state == State::Replica && report.term == record.term)
    };
    let mut names: Vec<&String> = replicas(primary, wanted).collect();
    // Stable: equals stay in the order of the members. While the primary is out of order nobody can be judged.
    let is_up = is_primary(record, primary, view);
    // Who is to take over has to have everything first.
    names.sort_by_key(|name| {
        let is_preferred = wanted.preferred.as_ref() == Some(*name);
        let is_known = record.waits.contains(name);
        (is_up && !follows(name), !is_preferred, !is_known)
    });
    let mut names: Vec<String> = names
        .into_iter()
        .take(wanted.synchronous)
        .cloned()
        .collect();
    names.sort();
    names
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
