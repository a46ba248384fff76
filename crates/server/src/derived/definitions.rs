//! CustomResourceDefinitions follow the commit log: served from the change on that says `Established`, gone with the
//! change that removes them.
//!
//! A schema takes milliseconds or more to compile, which is too long for the store's lock. So a definition is compiled
//! before its write ([`Derived::prepare`]) and handed over within the commit.

use std::sync::Arc;

use serde_json::Value;

use super::queue::Task;
use super::{Contents, Derived, body};
use crate::conversion::collection_name;
use crate::definitions::{is_established, names_are_accepted, versions};
use crate::object;
use crate::registry::{Defined, Registry};
use crate::resource::{Incarnation, Served};
use crate::status::ApiError;
use crate::storage::{Change, Event, Record, Store};

/// What a definition comes to, before it is stored.
pub(crate) struct Prepared {
    serving: Serving,
    /// The collection of its objects.
    collection: String,
    terminating: bool,
    /// Whether the server has to write its status or tear it down.
    unfinished: bool,
}

enum Serving {
    /// As it is already.
    Same,
    /// No version is served any more.
    Nothing,
    New {
        incarnation: Arc<Incarnation>,
        versions: Vec<Served>,
    },
}

impl Prepared {
    /// Reads a definition. What `registry` serves in the same way is not compiled again.
    pub(crate) fn read(
        value: &Value,
        registry: Option<&Registry>,
        home: &Store,
    ) -> Result<Self, ApiError> {
        let current = registry.and_then(|registry| registry.defined(object::name(value)));
        let current = current.as_ref().map(|defined| &defined.incarnation);
        let serving = if !is_established(&value["status"]) {
            Serving::Nothing
        } else if current.is_some_and(|current| current.serves(value)) {
            Serving::Same
        } else {
            let incarnation = Arc::new(Incarnation::of(value));
            Serving::New {
                versions: versions(value, &incarnation, home)?,
                incarnation,
            }
        };
        let (group, plural) = (&value["spec"]["group"], &value["spec"]["names"]["plural"]);
        let terminating = object::is_deleting(value);
        Ok(Self {
            serving,
            collection: collection_name(
                group.as_str().unwrap_or(""),
                plural.as_str().unwrap_or(""),
            ),
            terminating,
            unfinished: terminating || !names_are_accepted(value),
        })
    }
}

/// Versions that are served from a revision on.
fn defined(incarnation: Arc<Incarnation>, versions: Vec<Served>, since: u64) -> Arc<Defined> {
    let versions = versions
        .into_iter()
        .map(|served| Arc::new(served.since(since)));
    Arc::new(Defined {
        incarnation,
        versions: versions.collect(),
    })
}

impl Derived {
    /// Hands over what the definition comes to that is committed next. Called under the store's lock.
    pub(crate) fn stage(&self, prepared: Prepared) {
        *self.staged.lock() = Some(prepared);
    }

    pub(super) fn apply_definition(&self, event: &Event) {
        let (name, revision) = (event.record().key(), event.revision());
        let prepared = self.staged.lock().take();
        if matches!(event.change(), Change::Deleted { .. }) {
            self.registry.define(name, None, revision);
            // The name of a definition is that of its resource and its group.
            if let Some((plural, group)) = name.split_once('.') {
                let collection = collection_name(group, plural);
                self.teardowns.lock().remove(&collection);
            }
            return;
        }
        let Some(prepared) = prepared else {
            tracing::error!(name, "a definition was stored without being compiled");
            return;
        };
        match prepared.serving {
            Serving::Same => {}
            Serving::Nothing => self.registry.define(name, None, revision),
            Serving::New {
                incarnation,
                versions,
            } => {
                // The schema is as old as the spec: writes of the status do not change it.
                let since = self
                    .registry
                    .defined(name)
                    .and_then(|old| old.schema_revision(&incarnation));
                let since = since.unwrap_or(revision);
                self.registry
                    .define(name, Some(defined(incarnation, versions, since)), revision);
            }
        }
        if let Some(defined) = self.registry.defined(name) {
            defined.incarnation.seen(revision, prepared.unfinished);
            if prepared.terminating {
                defined.incarnation.terminate();
            }
        }
        if prepared.terminating {
            self.teardowns
                .lock()
                .insert(prepared.collection, name.to_owned());
        }
        self.queue.extend([Task::Definition(name.to_owned())]);
    }

    /// Looks at a definition again that waits for its objects to go.
    pub(super) fn continue_teardown(&self, collection: &str) {
        let definition = self.teardowns.lock().get(collection).cloned();
        self.queue.extend_some(definition.map(Task::Definition));
    }
}

impl Contents {
    pub(super) fn read_definition(
        &mut self,
        record: &Record,
        home: &Store,
        known: Option<&Registry>,
    ) {
        let name = record.key();
        let known = known.and_then(|known| known.defined(name));
        if let Some(defined) = known.filter(|defined| defined.incarnation.is_of(record)) {
            let copy = defined.in_store(home);
            if copy.incarnation.is_unfinished() {
                self.tasks.push(Task::Definition(name.to_owned()));
            }
            if copy.incarnation.is_terminating() {
                self.teardowns
                    .insert(copy.collection().to_owned(), name.to_owned());
            }
            self.definitions.insert(name.to_owned(), Arc::new(copy));
            return;
        }
        let Some(value) = body(record) else {
            return;
        };
        let prepared = match Prepared::read(&value, None, home) {
            Ok(prepared) => prepared,
            Err(error) => {
                return tracing::error!(name, %error, "a stored definition cannot be served");
            }
        };
        if prepared.terminating {
            self.teardowns.insert(prepared.collection, name.to_owned());
        }
        if prepared.unfinished {
            self.tasks.push(Task::Definition(name.to_owned()));
        }
        if let Serving::New {
            incarnation,
            versions,
        } = prepared.serving
        {
            incarnation.seen(record.revision(), prepared.unfinished);
            if prepared.terminating {
                incarnation.terminate();
            }
            let defined = defined(incarnation, versions, record.revision());
            self.definitions.insert(name.to_owned(), defined);
        }
    }
}
