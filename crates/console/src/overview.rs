//! The overview: how kinds and namespaces are doing, and what fails or is on its way, in one sentence each. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::feed::Phase;
use crate::health::Health;
use crate::kinds::Kind;
use crate::rows::Row;
use crate::world::World;

/// Objects that are named; the rest is counted.
const NAMED: usize = 200;

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Counts {
    total: usize,
    good: usize,
    busy: usize,
    bad: usize,
}

impl Counts {
    fn add(&mut self, health: Health) {
        self.total += 1;
        match health {
            Health::Good => self.good += 1,
            Health::Busy => self.busy += 1,
            Health::Bad => self.bad += 1,
            Health::None => {}
        }
    }
}

/// Sums up everything that is known.
pub(crate) fn of(world: &dyn World) -> Value {
    let mut kinds = Vec::new();
    let mut namespaces: BTreeMap<String, Counts> = BTreeMap::new();
    let (mut troubles, mut refused, mut starting) = (Vec::new(), Vec::new(), 0);
    world.each(&mut |collection| {
        let kind = collection.kind;
        if kind.is_noise() {
            return;
        }
        match &collection.phase {
            Phase::Refused { message } => {
                refused.push(json!({"id": kind.id, "kind": kind.kind, "why": message}))
            }
            Phase::Live {
                namespace: Some(namespace),
                why,
            } => {
                refused
                    .push(json!({"id": kind.id, "kind": kind.kind, "why": why, "only": namespace}));
            }
            Phase::Starting => starting += 1,
            _ => {}
        }
        let mut counts = Counts::default();
        for row in collection.rows.iter() {
            let health = row.verdict.health;
            counts.add(health);
            if let Some(namespace) = row.key().namespace() {
                namespaces
                    .entry(namespace.to_owned())
                    .or_default()
                    .add(health);
            }
            if matches!(health, Health::Bad | Health::Busy) {
                troubles.push(trouble(kind, row));
            }
        }
        kinds
            .push(json!({"id": kind.id, "kind": kind.kind, "group": kind.group, "counts": counts}));
    });
    // What is bad comes first, and of that what is newest.
    troubles.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    let count = troubles.len();
    let named: Vec<Value> = troubles
        .into_iter()
        .take(NAMED)
        .map(|(_, value)| value)
        .collect();
    json!({
        "kinds": kinds, "namespaces": namespaces, "troubles": named, "troubleCount": count,
        "refused": refused, "starting": starting,
    })
}

fn trouble(kind: &Kind, row: &Row) -> ((Health, String), Value) {
    let shown = json!({
        "id": kind.id, "kind": kind.kind, "ns": row.key().namespace(), "name": row.key().name(),
        "health": row.verdict.health, "why": row.verdict.sentence, "created": row.created,
    });
    ((row.verdict.health, row.created.clone()), shown)
}
