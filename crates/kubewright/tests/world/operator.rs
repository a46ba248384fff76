//! The operator: a ConfigMap for each Note, and one mistake of each kind on demand.

use std::sync::Arc;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use kubewright::prelude::*;
use kubewright::testing::World;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a user asks for.
#[kubewright::api]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "notes.example.com",
    version = "v1",
    kind = "Note",
    namespaced,
    status = "NoteStatus"
)]
pub(crate) struct NoteSpec {
    /// What the ConfigMap says.
    pub text: String,
    /// How the reconciler goes wrong.
    #[serde(default)]
    pub mistake: Mistake,
}

/// What became of it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub(crate) struct NoteStatus {
    /// What is known of it.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// How a reconciler goes wrong.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Mistake {
    /// It makes no mistake.
    #[default]
    None,
    /// Fails, after it has said so in a condition and an event.
    Fail,
    /// Reads what no rule allows.
    Read,
    /// Writes each time, and runs again.
    Loop,
}

struct Notes;

impl Reconciler<Note> for Notes {
    async fn reconcile(&self, note: Arc<Note>, cx: &Context) -> Result<Outcome> {
        match note.spec.mistake {
            Mistake::None => {}
            Mistake::Fail => {
                cx.event(
                    &*note,
                    EventKind::Warning,
                    "Unreachable",
                    "nobody is at home",
                );
                report(&note, cx).await?;
                return Err(Error::msg("the registry does not answer"));
            }
            Mistake::Read => drop(cx.client().live().get::<Secret>(cx.key()).await?),
            Mistake::Loop => {
                let text = cx.now().to_string();
                cx.client().apply(&config_map(&note, &text)).await?;
                return Ok(Outcome::requeue_after(std::time::Duration::from_millis(
                    200,
                )));
            }
        }
        let present = cx.client().get::<ConfigMap>(cx.key()).await?;
        let wanted = config_map(&note, &note.spec.text);
        if present.is_none_or(|present| present.data != wanted.data) {
            cx.client().apply(&wanted).await?;
        }
        Ok(Outcome::done())
    }
}

async fn report(note: &Note, cx: &Context) -> Result {
    let mut after = note.clone();
    let status = after.status.get_or_insert_default();
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "Unreachable", "message": "the bell is broken",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    });
    status.conditions = vec![serde_json::from_value(condition)?];
    if after.status != note.status {
        cx.client().patch_status(note, &after).await?;
    }
    Ok(())
}

fn config_map(note: &Note, text: &str) -> ConfigMap {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": note.metadata.name, "namespace": note.metadata.namespace},
        "data": {"text": text},
    });
    let mut map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
    set_controller_reference(note, &mut map).expect("both live in one namespace");
    map
}

#[kubewright::controller]
fn notes() -> Controller {
    Controller::of::<Note>("notes")
        .owns::<ConfigMap>()
        .reconciler(Notes)
}

pub(crate) fn note(name: &str, mistake: Mistake) -> Note {
    let text = "hello".to_owned();
    let mut note = Note::new(name, NoteSpec { text, mistake });
    note.metadata.namespace = Some("default".to_owned());
    note
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("default", name)
}

pub(crate) async fn create(world: &World, name: &str, mistake: Mistake) -> Note {
    let made = world.client.create(&note(name, mistake)).await;
    made.expect("the note is created")
}

/// Waits for the ConfigMap of a note with this text.
pub(crate) async fn until_text(world: &World, name: &str, text: &str) -> ConfigMap {
    let has_text = |map: Option<&ConfigMap>| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data.get("text").is_some_and(|it| it == text))
    };
    let found = world.until(&key(name), has_text).await;
    found.expect("it is there")
}

/// The text of the panic of a future.
pub(crate) async fn panic_of<T>(future: impl Future<Output = T>) -> String {
    let ended = std::panic::AssertUnwindSafe(future).catch_unwind().await;
    let Err(panic) = ended else {
        panic!("it did not fail");
    };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_default()
}

/// Fails with the whole text when a part is missing.
#[track_caller]
pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}
