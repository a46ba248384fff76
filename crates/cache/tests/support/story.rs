//! A handler that insists on a sound story and remembers where it led.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::{Event, Handler, Key};
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// What the handler believes to exist, with versions.
    state: BTreeMap<Key, String>,
    /// What was wrong with the story.
    faults: Vec<String>,
    pub(crate) events: Vec<String>,
    pub(crate) resyncs: usize,
}

/// Hears of ConfigMaps, with a rest after each event.
pub(crate) struct Story {
    pub(crate) record: Arc<Mutex<Record>>,
    pub(crate) rest: Duration,
}

impl Story {
    pub(crate) fn new() -> (Self, Arc<Mutex<Record>>) {
        Self::slow(Duration::ZERO)
    }

    pub(crate) fn slow(rest: Duration) -> (Self, Arc<Mutex<Record>>) {
        let record: Arc<Mutex<Record>> = Arc::default();
        (
            Self {
                record: record.clone(),
                rest,
            },
            record,
        )
    }
}

impl Handler<ConfigMap> for Story {
    async fn handle(&mut self, event: Event<ConfigMap>) {
        self.record.lock().hear(&event);
        if !self.rest.is_zero() {
            tokio::time::sleep(self.rest).await;
        }
    }
}

impl Record {
    /// Hears one event. What is wrong with it is noted: a panic in a handler would be caught.
    fn hear(&mut self, event: &Event<ConfigMap>) {
        let key = event.object().key().clone();
        let version = event.object().resource_version().into_owned();
        let name = key.name().to_owned();
        if event.is_resync() {
            self.resyncs += 1;
            let known = self.state.get(&key) == Some(&version);
            return self.insist(known, || {
                format!("a resync of {name} repeats something else")
            });
        }
        match event {
            Event::Added { initial, .. } => {
                let new = self.state.insert(key, version).is_none();
                self.insist(new, || format!("{name} was added twice"));
                let how = if *initial { "initial" } else { "added" };
                self.events.push(format!("{how} {name}"));
            }
            Event::Updated { old, .. } => {
                let before = self.state.insert(key, version.clone());
                let joined = before.as_deref() == Some(&*old.resource_version());
                self.insist(joined, || format!("{name} has a gap"));
                let number = |v: &str| v.parse::<u64>().unwrap_or(0);
                let forward = number(&old.resource_version()) < number(&version);
                self.insist(forward, || format!("{name} went back"));
                self.events.push(format!("updated {name}"));
            }
            Event::Deleted { observed, .. } => {
                let known = self.state.remove(&key).is_some();
                self.insist(known, || format!("{name} was never added"));
                let how = if *observed { "deleted" } else { "missed" };
                self.events.push(format!("{how} {name}"));
            }
            _ => {}
        }
    }

    fn insist(&mut self, sound: bool, fault: impl FnOnce() -> String) {
        if !sound {
            self.faults.push(fault());
        }
    }

    /// Whether the story, which must be sound, has led to this state.
    pub(crate) fn led_to(&self, truth: &BTreeMap<Key, String>) -> bool {
        assert_eq!(self.faults, [""; 0], "{:?}", self.events);
        self.state == *truth
    }

    /// The events of one test's objects, without those that the server makes for itself.
    pub(crate) fn about(&self, names: &[&str]) -> Vec<String> {
        assert_eq!(self.faults, [""; 0], "{:?}", self.events);
        let is_about = |event: &&String| {
            names
                .iter()
                .any(|name| event.ends_with(&format!(" {name}")))
        };
        self.events.iter().filter(is_about).cloned().collect()
    }
}
