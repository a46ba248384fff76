//! What goes with an object that is deleted: everything that it owns, all of a namespace, all objects of a definition. Pure.

use std::collections::{BTreeMap, BTreeSet};

use http::Response;
use kubewright_cache::Key;
use serde_json::{Value, json};

use crate::http::{Body, Problem, json_of};
use crate::kinds::Kind;
use crate::query::Query;
use crate::read;
use crate::rows::Row;
use crate::state::State;
use crate::world::World;

/// Objects that are named; the rest is counted.
const NAMED: usize = 100;
/// How long kinds that are only now read are waited for.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(4);

/// Answers what would go with an object.
pub(crate) async fn dependents(state: &State, query: &Query) -> Result<Response<Body>, Problem> {
    let kind = read::kind(state, query).await?;
    let name = read::name(query)?;
    let key = query
        .get("ns")
        .map_or_else(|| Key::cluster(name), |namespace| Key::new(namespace, name));
    for feed in state.feeds.open_all() {
        feed.settled(PATIENCE).await;
    }
    Ok(json_of(&of(&*state.feeds, &kind, &key)))
}

/// An object as the page names it.
struct Named {
    kind: String,
    id: String,
    key: Key,
}

/// What goes with an object, found round by round: what it owns, what those own, and so on.
struct Fall<'a> {
    kind: &'a Kind,
    key: &'a Key,
    /// The group and plural name of the kind that goes, if the object is a definition.
    definition: Option<(String, String)>,
    uids: BTreeSet<String>,
    going: Vec<Named>,
    /// Objects that another owner keeps.
    staying: Vec<Named>,
}

/// Computes what goes with an object, and what stays because it has another owner.
fn of(world: &dyn World, kind: &Kind, key: &Key) -> Value {
    let mut fall = Fall {
        kind,
        key,
        definition: defined(world, kind, key),
        uids: BTreeSet::new(),
        going: Vec::new(),
        staying: Vec::new(),
    };
    let mut finalizers = Value::Null;
    world.each(&mut |collection| {
        if collection.kind.id == kind.id
            && let Some(row) = collection.rows.get(key)
        {
            fall.uids.insert(row.uid.clone());
            finalizers = row.value(kind)["metadata"]["finalizers"].clone();
        }
    });
    // Owners are found before what they own, or in one of the next rounds.
    while fall.round(world) {}
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for named in &fall.going {
        *counts.entry(&named.kind).or_default() += 1;
    }
    json!({
        "counts": counts, "count": fall.going.len(), "objects": shown(&fall.going),
        "stays": shown(&fall.staying), "finalizers": finalizers,
    })
}

impl Fall<'_> {
    /// Looks at all objects once more. Returns whether any was found that goes too.
    fn round(&mut self, world: &dyn World) -> bool {
        let before = self.uids.len();
        self.staying.clear();
        world.each(&mut |collection| {
            if !collection.kind.is_noise() {
                for row in collection.rows.iter() {
                    self.judge(collection.kind, row);
                }
            }
        });
        self.uids.len() > before
    }

    fn judge(&mut self, kind: &Kind, row: &Row) {
        if self.uids.contains(&row.uid) {
            return;
        }
        let owners = row.owners.iter();
        let owned = owners
            .filter(|owner| self.uids.contains(&owner.uid))
            .count();
        let named = || Named {
            kind: kind.kind.clone(),
            id: kind.id.clone(),
            key: row.key().clone(),
        };
        if self.is_inside(kind, row) || (owned > 0 && owned == row.owners.len()) {
            self.uids.insert(row.uid.clone());
            self.going.push(named());
        } else if owned > 0 {
            self.staying.push(named());
        }
    }

    /// Whether an object is of the namespace or of the definition that goes.
    fn is_inside(&self, kind: &Kind, row: &Row) -> bool {
        let goes = self.kind.is("", "Namespace");
        let in_namespace = goes && row.key().namespace() == Some(self.key.name());
        let definition = self.definition.as_ref();
        let is_defined = definition
            .is_some_and(|(group, plural)| kind.group == *group && kind.plural == *plural);
        in_namespace || is_defined
    }
}

/// The group and the plural name that a definition defines.
fn defined(world: &dyn World, kind: &Kind, key: &Key) -> Option<(String, String)> {
    if kind.plural != "customresourcedefinitions" {
        return None;
    }
    let mut found = None;
    world.each(&mut |collection| {
        if collection.kind.id == kind.id {
            found = collection.rows.get(key).map(|row| row.value(kind));
        }
    });
    let value = found?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some((
        text(&value["spec"]["group"])?,
        text(&value["spec"]["names"]["plural"])?,
    ))
}

fn shown(objects: &[Named]) -> Vec<Value> {
    objects
        .iter()
        .take(NAMED)
        .map(|named| {
            json!({"kind": named.kind, "id": named.id, "ns": named.key.namespace(), "name": named.key.name()})
        })
        .collect()
}
