//! Keeps the policy in step with the stored roles and bindings.
//!
//! Every write of such an object takes it up before the write is answered, so whoever has the answer finds it in
//! force. The object is read from the store under the policy's lock: of two writers that come here in the wrong
//! order, the later one still finds the newest version.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::policy::Policy;
use crate::api::write::Part;
use crate::core::Core;
use crate::fields::Writer;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::At;

const GROUP: &str = "rbac.authorization.k8s.io";
const PLURALS: [&str; 4] = [
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
];
/// Most aggregated roles that are brought up to date after one write: selectors may go in circles.
const MAX_AGGREGATIONS: usize = 64;

/// Whether objects of this kind make up the policy.
pub(crate) fn is_policy(served: &Served) -> bool {
    &*served.resource.group == GROUP
}

/// Gives an aggregated ClusterRole the rules that it comes to, whatever its writer says.
pub(crate) fn aggregate(core: &Core, served: &Served, value: &mut Value) {
    if !served.is(GROUP, "ClusterRole") {
        return;
    }
    if let Some(rules) = core.access.policy.read().aggregated(value) {
        value["rules"] = serde_json::to_value(rules).expect("rules are plain data");
    }
}

impl Core {
    /// Takes up all stored roles and bindings.
    pub(crate) fn load_policy(&self) -> Result<(), ApiError> {
        let mut policy = Policy::default();
        for plural in PLURALS {
            let served = self.registry.now().builtin(GROUP, "v1", plural);
            let snapshot = served
                .collection
                .snapshot(At::Latest)
                .map_err(ApiError::internal)?;
            for record in snapshot.range("", None) {
                put(&mut policy, &served, &served.revive(record)?);
            }
        }
        *self.access.policy.write() = policy;
        Ok(())
    }

    /// Takes up a role or binding that was written or removed, and what follows for aggregated roles.
    pub(crate) async fn follow_policy(
        &self,
        served: &Arc<Served>,
        key: &str,
    ) -> Result<(), ApiError> {
        let mut waiting = VecDeque::from(self.take_up(served, key)?);
        for _ in 0..MAX_AGGREGATIONS {
            let Some(name) = waiting.pop_front() else {
                return Ok(());
            };
            let same = |old: &Value| Ok(old.clone());
            let mut warnings = Vec::new();
            // The rules are filled in on the way, as for every write of an aggregated role.
            let writer = Writer::server("");
            let update =
                self.update_alone(served, &name, Part::Whole, &writer, &mut warnings, same);
            match update.await {
                Ok(_) => {}
                Err(error) if error.code() == http::StatusCode::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
            for more in self.take_up(served, &name)? {
                if !waiting.contains(&more) {
                    waiting.push_back(more);
                }
            }
        }
        tracing::warn!(
            role = key,
            "aggregated roles select each other; some may be out of date"
        );
        Ok(())
    }

    /// Puts one object into the policy as it is stored now; gives the aggregated roles that are no longer what they
    /// come to.
    fn take_up(&self, served: &Served, key: &str) -> Result<Vec<String>, ApiError> {
        let mut policy = self.access.policy.write();
        let is_cluster_role = served.is(GROUP, "ClusterRole");
        let before = policy.labels(key).filter(|_| is_cluster_role);
        match served.collection.get(key) {
            Some(record) => put(&mut policy, served, &served.revive(&record)?),
            None => remove(&mut policy, served, key),
        }
        if !is_cluster_role {
            return Ok(Vec::new());
        }
        let after = policy.labels(key);
        let labels: Vec<_> = [&before, &after].into_iter().flatten().collect();
        Ok(policy.outdated(key, &labels))
    }
}

fn put(policy: &mut Policy, served: &Served, object: &Value) {
    match &*served.resource.plural {
        "clusterroles" => policy.put_cluster_role(object),
        "roles" => policy.put_role(object),
        _ => policy.put_binding(object),
    }
}

fn remove(policy: &mut Policy, served: &Served, key: &str) {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    match &*served.resource.plural {
        "clusterroles" => policy.remove_cluster_role(name),
        "roles" => policy.remove_role(namespace, name),
        _ => policy.remove_binding(namespace, name),
    }
}
