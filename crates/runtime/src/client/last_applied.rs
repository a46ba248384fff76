//! Remembers what was last applied, so that an apply which would change nothing is not sent.
//!
//! The server keeps account of which fields an apply has set, and the cache does not hold that account. So whether an apply
//! would change anything is decided from two facts: it is the very one that was sent last, and every field that it sets
//! still has the value that the server gave it then. Anything else is sent. After a restart nothing is remembered, and
//! each object is applied once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use kubewright_cache::Key;
use serde_json::{Map, Value};

/// How many objects are remembered before the first look for those that are gone.
const FIRST_SWEEP: usize = 1024;

/// What was last applied to each object of a resource.
#[derive(Debug)]
pub(super) struct LastApplied {
    /// A look-up table: it is never iterated to decide an order.
    objects: HashMap<Key, Fingerprint>,
    sweep_at: usize,
}

/// An apply, and what became of the fields that it set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    request: u64,
    fields: u64,
}

impl Fingerprint {
    /// The fingerprint of an apply by this owner, on an object in this state. None if the object lacks a field that is set:
    /// a write-only field, say, whose value cannot be compared.
    pub(super) fn of(owner: &str, applied: &Value, object: &Value) -> Option<Self> {
        let fields = project(applied, object)?;
        Some(Self {
            request: hash(&(owner, applied.to_string())),
            fields: hash(&fields.to_string()),
        })
    }
}

impl Default for LastApplied {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            sweep_at: FIRST_SWEEP,
        }
    }
}

impl LastApplied {
    /// Whether this very apply was the last one, and its fields are as they were then.
    pub(super) fn is(&self, key: &Key, fingerprint: Fingerprint) -> bool {
        self.objects.get(key) == Some(&fingerprint)
    }

    /// Remembers an apply that was answered. Objects that do not exist any more are forgotten from time to time.
    pub(super) fn remember(
        &mut self,
        key: &Key,
        fingerprint: Fingerprint,
        exists: impl Fn(&Key) -> bool,
    ) {
        self.objects.insert(key.clone(), fingerprint);
        if self.objects.len() >= self.sweep_at {
            self.objects.retain(|key, _| exists(key));
            self.sweep_at = FIRST_SWEEP.max(self.objects.len() * 2);
        }
    }

    /// Forgets an object, whose state is not known.
    pub(super) fn forget(&mut self, key: &Key) {
        self.objects.remove(key);
    }
}

/// The values that an object has where an apply sets any. Lists whose length differs are taken whole: without the schema
/// it is unknown which elements belong together.
fn project(applied: &Value, object: &Value) -> Option<Value> {
    match (applied, object) {
        (Value::Object(applied), Value::Object(object)) => {
            let mut fields = Map::new();
            for (name, value) in applied {
                let found = object.get(name).unwrap_or(&Value::Null);
                fields.insert(name.clone(), project(value, found)?);
            }
            Some(Value::Object(fields))
        }
        (Value::Array(applied), Value::Array(object)) if applied.len() == object.len() => {
            let pairs = applied.iter().zip(object);
            let items: Option<Vec<Value>> = pairs.map(|(a, o)| project(a, o)).collect();
            items.map(Value::Array)
        }
        // Servers drop what is empty.
        (Value::Object(applied), Value::Null) if applied.is_empty() => Some(Value::Null),
        (Value::Array(applied), Value::Null) if applied.is_empty() => Some(Value::Null),
        (Value::Null, other) => Some(other.clone()),
        (_, Value::Null) => None,
        (_, other) => Some(other.clone()),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(applied: &Value, before: &Value, after: &Value, same: bool) {
        let mut last = LastApplied::default();
        let key = Key::new("default", "a");
        if let Some(fingerprint) = Fingerprint::of("me", applied, before) {
            last.remember(&key, fingerprint, |_| true);
        }
        let again = Fingerprint::of("me", applied, after);
        let is = again.is_some_and(|again| last.is(&key, again));
        assert_eq!(is, same, "{applied} on {before}, then {after}");
    }

    #[test]
    fn apply_is_known_while_its_fields_have_the_values_that_it_gave_them() {
        let set = json!({"spec": {"replicas": 2, "ports": [{"port": 80}]}});
        let stored =
            json!({"spec": {"replicas": 2, "ports": [{"port": 80, "protocol": "TCP"}], "x": 1}});
        check(&set, &stored, &stored, true);
        let mut other = stored.clone();
        other["spec"]["x"] = json!(2);
        other["status"] = json!({"ready": 1});
        check(&set, &stored, &other, true);
        other["spec"]["replicas"] = json!(7);
        check(&set, &stored, &other, false);
        let mut longer = stored.clone();
        longer["spec"]["ports"] = json!([{"port": 80}, {"port": 81}]);
        check(&set, &stored, &longer, false);
    }

    #[test]
    fn values_that_the_server_writes_in_another_way_are_compared_as_it_writes_them() {
        let set = json!({"cpu": "1000m", "labels": {}});
        check(&set, &json!({"cpu": "1"}), &json!({"cpu": "1"}), true);
        check(&set, &json!({"cpu": "1"}), &json!({"cpu": "2"}), false);
    }

    #[test]
    fn field_that_can_only_be_written_is_written_each_time() {
        let set = json!({"stringData": {"a": "b"}});
        let stored = json!({"data": {"a": "Yg=="}});
        check(&set, &stored, &stored, false);
    }

    #[test]
    fn another_request_or_owner_is_not_known() {
        let (set, stored) = (json!({"a": 1}), json!({"a": 1, "b": 2}));
        let print = |owner: &str, set: &Value| {
            Fingerprint::of(owner, set, &stored).expect("it is all there")
        };
        let mut last = LastApplied::default();
        let key = Key::cluster("a");
        last.remember(&key, print("me", &set), |_| true);
        assert!(last.is(&key, print("me", &set)));
        assert!(!last.is(&key, print("you", &set)));
        assert!(!last.is(&key, print("me", &json!({"a": 1, "b": 2}))));
        last.forget(&key);
        assert!(!last.is(&key, print("me", &set)));
    }

    #[test]
    fn objects_that_are_gone_are_forgotten() {
        let print = Fingerprint::of("me", &json!({}), &json!({})).expect("nothing is set");
        let mut last = LastApplied::default();
        for number in 0..10_000 {
            let newest = format!("{number}");
            let is_newest = |key: &Key| key.name() == newest;
            last.remember(&Key::cluster(&newest), print, is_newest);
        }
        assert!(last.objects.len() <= FIRST_SWEEP, "{}", last.objects.len());
    }
}
