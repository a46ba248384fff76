//! What has happened so far: the tree as it is, events, and reconciles with their causes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Event;
use kubewright_runtime::cause::{Cause, Trigger};
use kubewright_runtime::controller::{Handle, Reconciled};
use kubewright_runtime::{Client, ClientError, Query};
use tokio::time::Instant;

use super::tree::{self, Line};

/// The story so far. Lines of `news` are in order and only grow.
pub(super) struct Story {
    began: Instant,
    pub(super) notes: Vec<String>,
    pub(super) lines: Vec<Line>,
    pub(super) news: Vec<News>,
    states: BTreeMap<String, String>,
    events: BTreeSet<(String, i32)>,
    /// The number of the last reconcile that was shown.
    reconciled: u64,
}

/// Something that happened, with the revision that it came with.
type Found = (u64, fn(String) -> News, String);

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    State(String),
    Event(String),
    Reconcile(String),
}

impl Story {
    pub(super) fn new(began: Instant) -> Self {
        Self {
            began,
            notes: Vec::new(),
            lines: Vec::new(),
            news: Vec::new(),
            states: BTreeMap::new(),
            events: BTreeSet::new(),
            reconciled: 0,
        }
    }

    /// Says something above everything else.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Looks at the cluster and the operator once more.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        handle: &Handle,
    ) -> Result<(), ClientError> {
        // What happened since the last look, each with the revision that it came with: an object comes before the
        // reconcile that it caused, and that before the objects which it wrote.
        let mut found: Vec<Found> = Vec::new();
        for reconciled in handle.history().list() {
            if reconciled.id > self.reconciled {
                self.reconciled = reconciled.id;
                let text = describe(&reconciled);
                found.push((cause_revision(&reconciled), News::Reconcile, text));
            }
        }
        self.lines = tree::look(client).await?;
        let here = Query::all().namespace("default");
        for event in client.list::<Event>(here).await? {
            let name = event.metadata.name.clone().unwrap_or_default();
            if self.events.insert((name, event.count.unwrap_or(1))) {
                let revision = tree::revision(&event.metadata);
                found.push((revision, News::Event, line(&event)));
            }
        }
        // An object stands before what is said of it at the same revision.
        let states = self.new_states(&found);
        found.splice(0..0, states);
        found.extend(self.gone());
        found.sort_by_key(|(revision, ..)| *revision);
        for (_, what, text) in found {
            self.tell(what, &text);
        }
        Ok(())
    }

    /// States that are not as they were, with the revision of their object. One that is new comes before all that was said
    /// of it meanwhile, and before what it owns; those that are gone come last.
    fn new_states(&self, said: &[Found]) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        let mut earliest = u64::MAX;
        // From the last line up, so that an owner has seen what it owns.
        for line in self.lines.iter().rev() {
            let before = self.states.get(&line.name);
            let mut revision = line.revision;
            if before.is_none() {
                let about = said.iter().filter(|(.., text)| text.contains(&line.name));
                let first = about.map(|(revision, ..)| *revision).min();
                earliest = earliest.min(revision).min(first.unwrap_or(revision));
                revision = earliest;
            }
            if line.depth == 0 {
                earliest = u64::MAX;
            }
            if before != Some(&line.state) {
                let text = format!("{:<36} {}", line.name, line.state);
                found.push((revision, News::State, text));
            }
        }
        found.reverse();
        found
    }

    /// Remembers the states of now, and says which objects are gone.
    fn gone(&mut self) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        let mut now = BTreeMap::new();
        for line in &self.lines {
            now.insert(line.name.clone(), line.state.clone());
        }
        let before = std::mem::replace(&mut self.states, now);
        for name in before
            .keys()
            .filter(|name| !self.states.contains_key(*name))
        {
            found.push((u64::MAX, News::State, format!("{name:<36} gone")));
        }
        found
    }

    fn tell(&mut self, what: fn(String) -> News, text: &str) {
        let at = self.began.elapsed().as_secs_f64();
        self.news.push(what(format!("{at:>7.2}s  {text}")));
    }

    /// The last lines of one sort, so many at most.
    pub(super) fn last(&self, is_it: fn(&News) -> bool, count: usize) -> Vec<&str> {
        let mut lines: Vec<&str> = self
            .news
            .iter()
            .rev()
            .filter(|n| is_it(n))
            .take(count)
            .map(News::text)
            .collect();
        lines.reverse();
        lines
    }
}

impl News {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::State(text) | Self::Event(text) | Self::Reconcile(text) => text,
        }
    }
}

fn line(event: &Event) -> String {
    let object = &event.involved_object;
    let (kind, name) = (object.kind.as_deref(), object.name.as_deref());
    let times = match event.count {
        Some(count) if count > 1 => format!(" (x{count})"),
        _ => String::new(),
    };
    format!(
        "{} {}/{}: {}{times}",
        event.reason.as_deref().unwrap_or_default(),
        kind.unwrap_or_default(),
        name.unwrap_or_default(),
        event.message.as_deref().unwrap_or_default(),
    )
}

/// The newest revision among the causes of a reconcile.
fn cause_revision(reconciled: &Reconciled) -> u64 {
    let versions = reconciled.causes.iter();
    let revisions = versions.filter_map(|cause| cause.resource_version.parse().ok());
    revisions.max().unwrap_or(0)
}

fn describe(reconciled: &Reconciled) -> String {
    let because: Vec<String> = reconciled.causes.iter().map(cause).collect();
    let because = match because.as_slice() {
        [] => "nothing that is known".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let wrote = match reconciled.writes.len() {
        0 => String::new(),
        1 => ", 1 write".to_owned(),
        many => format!(", {many} writes"),
    };
    format!(
        "#{} {} because {because}: {}{wrote}",
        reconciled.id,
        reconciled.key.as_str(),
        reconciled.ended
    )
}

fn cause(cause: &Cause) -> String {
    let object = cause.object.as_deref().unwrap_or_default();
    let name = object.rsplit('/').next().unwrap_or_default();
    let of = format!("{}/{name}", cause.kind);
    match &cause.trigger {
        Trigger::Initial => format!("{of} was there"),
        Trigger::Added => format!("{of} is new"),
        Trigger::Updated { fields } => format!("{} of {of} changed", fields.join(", ")),
        Trigger::Deleted => format!("{of} is gone"),
        Trigger::Resync => "time has passed".to_owned(),
        Trigger::Retry => "it failed before".to_owned(),
        Trigger::Requeue => "it asked to".to_owned(),
        _ => "it was asked for".to_owned(),
    }
}
