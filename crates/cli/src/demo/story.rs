//! What has happened so far: the tree as it is, events, and reconciles with their causes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Event;
use kubewright_runtime::cause::{Cause, Trigger};
use kubewright_runtime::controller::{Handle, Reconciled};
use kubewright_runtime::{Client, ClientError, Query};
use tokio::time::Instant;

use super::tree::{self, Line};

/// Lines of events and of reconciles that are shown at once.
const SHOWN: usize = 6;

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
        for reconciled in handle.history().list() {
            if reconciled.id > self.reconciled {
                self.reconciled = reconciled.id;
                self.tell(News::Reconcile, &describe(&reconciled));
            }
        }
        self.lines = tree::look(client).await?;
        self.tell_states();
        let here = Query::all().namespace("default");
        let mut events = client.list::<Event>(here).await?;
        events.sort_by(|a, b| a.last_timestamp.cmp(&b.last_timestamp));
        for event in events {
            let name = event.metadata.name.clone().unwrap_or_default();
            if self.events.insert((name, event.count.unwrap_or(1))) {
                self.tell(News::Event, &line(&event));
            }
        }
        Ok(())
    }

    fn tell_states(&mut self) {
        let mut now = BTreeMap::new();
        for line in self.lines.clone() {
            if self.states.get(&line.name) != Some(&line.state) {
                self.tell(News::State, &format!("{:<36} {}", line.name, line.state));
            }
            now.insert(line.name, line.state);
        }
        let before = std::mem::replace(&mut self.states, now);
        for name in before.keys() {
            if !self.states.contains_key(name) {
                self.tell(News::State, &format!("{name:<36} gone"));
            }
        }
    }

    fn tell(&mut self, what: fn(String) -> News, text: &str) {
        let at = self.began.elapsed().as_secs_f64();
        self.news.push(what(format!("{at:>7.2}s  {text}")));
    }

    /// The last lines of one sort.
    pub(super) fn last(&self, is_it: fn(&News) -> bool) -> Vec<&str> {
        let mut lines: Vec<&str> = self
            .news
            .iter()
            .rev()
            .filter(|n| is_it(n))
            .take(SHOWN)
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
