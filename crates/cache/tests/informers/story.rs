//! A handler that insists on a sound story and remembers where it led.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::{Event, Handler, Key};
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What the handler believes to exist, with versions.
    pub(crate) state: BTreeMap<Key, String>,
    pub(crate) events: Vec<String>,
    pub(crate) resyncs: usize,
}

/// Hears of ConfigMaps, with a rest after each event.
pub(crate) struct Story {
    pub(crate) told: Arc<Mutex<Told>>,
    pub(crate) rest: Duration,
}

impl Story {
    pub(crate) fn new() -> (Self, Arc<Mutex<Told>>) {
        Self::slow(Duration::ZERO)
    }

    pub(crate) fn slow(rest: Duration) -> (Self, Arc<Mutex<Told>>) {
        let told: Arc<Mutex<Told>> = Arc::default();
        (
            Self {
                told: told.clone(),
                rest,
            },
            told,
        )
    }
}

impl Handler<ConfigMap> for Story {
    async fn handle(&mut self, event: Event<ConfigMap>) {
        self.told.lock().hear(&event);
        if !self.rest.is_zero() {
            tokio::time::sleep(self.rest).await;
        }
    }
}

impl Told {
    fn hear(&mut self, event: &Event<ConfigMap>) {
        let key = event.object().key().clone();
        let version = event.object().resource_version().into_owned();
        let name = key.name().to_owned();
        if event.is_resync() {
            self.resyncs += 1;
            assert_eq!(
                self.state.get(&key),
                Some(&version),
                "a resync repeats what was told"
            );
            return;
        }
        match event {
            Event::Added { initial, .. } => {
                assert!(
                    self.state.insert(key, version).is_none(),
                    "{name} was added twice"
                );
                self.events.push(format!(
                    "{} {name}",
                    if *initial { "initial" } else { "added" }
                ));
            }
            Event::Updated { old, .. } => {
                let before = self.state.insert(key, version.clone());
                assert_eq!(
                    before.as_deref(),
                    Some(&*old.resource_version()),
                    "{name} has a gap"
                );
                let number = |v: &str| v.parse::<u64>().expect("a number");
                assert!(
                    number(&old.resource_version()) < number(&version),
                    "{name} went back"
                );
                self.events.push(format!("updated {name}"));
            }
            Event::Deleted { observed, .. } => {
                assert!(self.state.remove(&key).is_some(), "{name} was never added");
                self.events.push(format!(
                    "{} {name}",
                    if *observed { "deleted" } else { "missed" }
                ));
            }
            _ => {}
        }
    }

    /// The events of one test's objects, without those that the server makes for itself.
    pub(crate) fn about(&self, names: &[&str]) -> Vec<String> {
        let is_about = |event: &&String| {
            names
                .iter()
                .any(|name| event.ends_with(&format!(" {name}")))
        };
        self.events.iter().filter(is_about).cloned().collect()
    }
}
