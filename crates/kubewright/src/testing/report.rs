//! Why a wait failed: all that can be known, in one text.

use std::fmt::{self, Write as _};
use std::panic::Location;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kubewright_runtime::controller::Reconciled;
use kubewright_runtime::{Key, Query};
use kubewright_testing::Exchange;
use serde_json::Value;

use super::show;
use super::wait::Stop;
use super::world::World;

/// Lines of one kind that are shown.
const SHOWN: usize = 10;

/// What was waited for, and by whom.
pub(super) struct Failure {
    pub(super) what: String,
    pub(super) place: &'static Location<'static>,
    subject: Option<Subject>,
    writes: Vec<Exchange>,
}

/// The object that was waited for.
pub(super) struct Subject {
    pub(super) resource: ApiResource,
    pub(super) key: Key,
}

impl Failure {
    pub(super) fn new(what: String, place: &'static Location<'static>) -> Self {
        Self {
            what,
            place,
            subject: None,
            writes: Vec::new(),
        }
    }

    pub(super) fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(subject);
        self
    }

    pub(super) fn writes(mut self, writes: Vec<Exchange>) -> Self {
        self.writes = writes;
        self
    }
}

/// `Guestbook default/sample`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource.kind, self.key.as_str())
    }
}

/// Panics with everything that explains why a wait timed out.
pub(super) async fn fail(world: &World, failure: Failure, stop: Stop) -> ! {
    let mut text = headline(&failure, &stop);
    if let Some(subject) = &failure.subject {
        tell_of_object(world, subject, &mut text).await;
    }
    let refused = world.wire().exchanges_since(0);
    let refused = refused.iter().filter(|it| it.code >= Some(400));
    section(
        &mut text,
        "the operator's last refused requests",
        last(refused.map(refusal)),
    );
    section(
        &mut text,
        "the operator's writes",
        last(failure.writes.iter().map(Exchange::to_string)),
    );
    let runs = world.reconciles();
    let key = failure.subject.as_ref().map(|subject| &subject.key);
    section(&mut text, "the last reconciles", reconciles(&runs, key));
    let _ = write!(
        text,
        "\nto run it again: World::builder().seed({})",
        world.seed()
    );
    panic!("{text}");
}

fn headline(failure: &Failure, stop: &Stop) -> String {
    let Failure { what, place, .. } = failure;
    match stop {
        Stop::TimedOut(limit) => format!("timed out after {limit:?} waiting for {what} at {place}"),
        Stop::Ended(cause) => {
            format!("the operator ended while {place} waited for {what}: {cause}")
        }
        Stop::Denied(exchange) => {
            let access = exchange.call.access.as_ref();
            let denied = access.map_or_else(String::new, ToString::to_string);
            let attribute = access.map_or_else(String::new, |access| access.attribute());
            format!(
                "the operator may not {denied} (while {place} waited for {what})\n  \
                 add this to a controller or webhook, and run `kubewright generate`:\n  {attribute}\n  \
                 or let the test go on with World::builder().tolerate_refusals()"
            )
        }
    }
}

/// A refused request, with what grants it if a role has to.
fn refusal(exchange: &Exchange) -> String {
    match exchange.denied() {
        Some(access) => format!("{exchange}; add {}", access.attribute()),
        None => exchange.to_string(),
    }
}

async fn tell_of_object(world: &World, subject: &Subject, text: &mut String) {
    let client = world.cluster.client();
    let Subject { resource, key } = subject;
    let api: Api<DynamicObject> = match key.namespace() {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    match api.get_opt(key.name()).await {
        Ok(None) => {
            let _ = write!(text, "\n{subject} does not exist");
        }
        Err(error) => {
            let _ = write!(text, "\n{subject} cannot be read: {error}");
        }
        Ok(Some(object)) => {
            let object: Value = serde_json::to_value(&object).unwrap_or_default();
            let yaml = show::yaml(&object);
            section(
                text,
                &format!("{subject} as it is"),
                yaml.lines().map(str::to_owned).collect(),
            );
            section(text, "its conditions", show::conditions(&object));
        }
    }
    section(text, "events about it", events(world, subject).await);
}

/// The last events about an object.
async fn events(world: &World, subject: &Subject) -> Vec<String> {
    let all = world.client.live().list::<Event>(Query::all()).await;
    let mut events = all.unwrap_or_default();
    let Subject { resource, key } = subject;
    events.retain(|event| {
        let about = &event.involved_object;
        about.kind.as_deref() == Some(resource.kind.as_str())
            && about.name.as_deref() == Some(key.name())
            && about.namespace.as_deref() == key.namespace()
    });
    events.sort_by_key(show::event_time);
    last(events.iter().map(show::event))
}

/// The last reconciles of a key, or if there are none the last ones of others.
fn reconciles(runs: &[Reconciled], key: Option<&Key>) -> Vec<String> {
    let of_key = |run: &&Reconciled| key.is_none_or(|key| run.key == *key);
    let lines = last(runs.iter().filter(of_key).map(Reconciled::to_string));
    match (lines.is_empty(), runs.is_empty()) {
        (false, _) => lines,
        (true, true) => vec!["none".to_owned()],
        (true, false) => {
            let mut lines = vec!["none of this object; others:".to_owned()];
            lines.extend(last(runs.iter().map(Reconciled::to_string)));
            lines
        }
    }
}

fn last(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.split_off(lines.len().saturating_sub(SHOWN))
}

/// Adds a section, unless it is empty.
fn section(text: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}:");
    for line in lines {
        let _ = write!(text, "\n  {line}");
    }
}
