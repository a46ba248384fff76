//! Disruption budgets as evictions spend them. A controller says how much there is; here it is checked and taken.

use std::sync::Arc;

use kubewright_schema::selector::LabelSelector;
use serde_json::{Value, json};

use crate::api::call::Call;
use crate::http::query::Persist;
use crate::object::{self, StoredLabels};
use crate::request::Part;
use crate::resource::Served;
use crate::status::{About, ApiError};
use crate::storage::At;
use crate::write::WriteRequest;

/// Most evictions that a controller has not yet seen through.
const MAX_DISRUPTED: usize = 2000;

const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const BUDGETS: About<'static> = About {
    group: "policy",
    resource: "poddisruptionbudget",
};

/// Takes one disruption from the budget that covers a pod, if there is one and the pod counts for it.
pub(super) async fn spend_budget(
    call: &Call,
    pod: &Value,
    persist: Persist,
) -> Result<(), ApiError> {
    let budgets = call
        .core
        .registry
        .now()
        .builtin("policy", "v1", "poddisruptionbudgets");
    let covering = covering(&budgets, call.namespace.as_deref().unwrap_or(""), pod)?;
    let (key, budget) = match covering.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(ApiError::unreasoned(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    if costs_nothing(budget, pod) {
        return Ok(());
    }
    let now = call.core.environment.now_rfc3339();
    if persist == Persist::DryRun {
        return spend(budget, &call.name, &now).map(drop);
    }
    let change = |old: &Value| spend(old, &call.name, &now);
    let request = WriteRequest::by_server(&budgets, key, Part::Own(""));
    let request = request.with_managers_as_given();
    call.core.update(&request, change).await?;
    Ok(())
}

/// Whether a pod does not count for its budget: it is not ready, and its end makes nothing worse.
fn costs_nothing(budget: &Value, pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    if conditions.any(|c| c["type"] == "Ready" && c["status"] == "True") {
        return false;
    }
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let (healthy, desired) = (status("currentHealthy"), status("desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || (healthy >= desired && desired > 0)
}

/// A budget with one disruption less, which the named pod is.
fn spend(old: &Value, pod: &str, now: &str) -> Result<Value, ApiError> {
    let (budget, status) = (object::name(old), &old["status"]);
    if status["observedGeneration"].as_i64().unwrap_or(0) < object::generation(old) {
        let why = format!("The disruption budget {budget} is still being processed by the server.");
        return Err(refusal(10, &why));
    }
    let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(ApiError::forbidden(BUDGETS, budget, why));
    }
    if status["disruptedPods"].as_object().map_or(0, |d| d.len()) > MAX_DISRUPTED {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(BUDGETS, budget, why));
    }
    if allowed == 0 {
        return Err(refusal(0, &shortage(budget, status)));
    }
    let mut new = old.clone();
    new["status"]["disruptionsAllowed"] = json!(allowed - 1);
    new["status"]["disruptedPods"][pod] = json!(now);
    if allowed == 1 {
        close(&mut new["status"], now);
    }
    Ok(new)
}

fn refusal(retry_after: u32, why: &str) -> ApiError {
    ApiError::too_many_requests(REFUSAL, retry_after).with_cause("DisruptionBudget", why, "")
}

/// Why a budget allows nothing: too few are healthy, or nobody could count them.
fn shortage(budget: &str, status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut failed =
        conditions.filter(|c| c["type"] == "DisruptionAllowed" && c["reason"] == "SyncFailed");
    if let Some(failed) = failed.next() {
        let why = failed["message"].as_str().unwrap_or("");
        return format!(
            "The disruption budget {budget} does not allow evicting pods currently because it failed sync: {why}"
        );
    }
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let (desired, healthy) = (count("desiredHealthy"), count("currentHealthy"));
    format!(
        "The disruption budget {budget} needs {desired} healthy pods and has {healthy} currently"
    )
}

/// Says that nothing more is allowed; the controller says when something is again.
fn close(status: &mut Value, now: &str) {
    let generation = status["observedGeneration"].clone();
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    for condition in conditions
        .iter_mut()
        .filter(|c| c["type"] == "DisruptionAllowed")
    {
        if condition["status"] != "False" {
            condition["lastTransitionTime"] = json!(now);
        }
        condition["status"] = json!("False");
        condition["reason"] = json!("InsufficientPods");
        condition["observedGeneration"] = generation.clone();
    }
}

/// The budgets that cover a pod, with their keys. One whose selector cannot be read covers nothing.
fn covering(
    budgets: &Arc<Served>,
    namespace: &str,
    pod: &Value,
) -> Result<Vec<(String, Value)>, ApiError> {
    let snapshot = budgets
        .collection
        .snapshot(At::Latest)
        .map_err(ApiError::internal)?;
    let labels = object::labels(pod);
    let mut covering = Vec::new();
    for record in snapshot.range(&format!("{namespace}/"), None) {
        let budget = budgets.revive(record)?;
        let selector = LabelSelector::from_object(&budget["spec"]["selector"]);
        if selector.is_ok_and(|selector| selector.matches(&StoredLabels(&labels))) {
            covering.push((record.key().to_owned(), budget));
        }
    }
    Ok(covering)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 2}, "spec": {}, "status": status})
    }

    #[test]
    fn budgets_are_spent_one_at_a_time_and_refuse_in_known_words() {
        let check = |status: Value, expected: Result<i64, (u16, &str)>| {
            let spent = spend(&budget(status.clone()), "p", "now");
            let found = spent.as_ref().map_err(|e| {
                let cause = e.to_value()["details"]["causes"][0]["message"].clone();
                (e.code().as_u16(), cause)
            });
            match (found, expected) {
                (Ok(new), Ok(left)) => {
                    assert_eq!(new["status"]["disruptionsAllowed"], left);
                    assert_eq!(new["status"]["disruptedPods"]["p"], "now");
                }
                (Err((code, cause)), Err((expected, text))) => {
                    assert_eq!(code, expected, "{status}");
                    assert_eq!(cause.as_str().unwrap_or(""), text, "{status}");
                }
                other => panic!("{status}: {other:?}"),
            }
        };
        check(
            json!({"observedGeneration": 2, "disruptionsAllowed": 2}),
            Ok(1),
        );
        check(
            json!({"observedGeneration": 1, "disruptionsAllowed": 2}),
            Err((
                429,
                "The disruption budget b is still being processed by the server.",
            )),
        );
        check(
            json!({"observedGeneration": 2, "disruptionsAllowed": 0, "desiredHealthy": 3, "currentHealthy": 2}),
            Err((
                429,
                "The disruption budget b needs 3 healthy pods and has 2 currently",
            )),
        );
        check(
            json!({"observedGeneration": 2, "disruptionsAllowed": -1}),
            Err((403, "")),
        );
    }

    #[test]
    fn last_disruption_closes_the_budget() {
        let condition =
            json!({"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods"});
        let status =
            json!({"observedGeneration": 2, "disruptionsAllowed": 1, "conditions": [condition]});
        let new = spend(&budget(status), "p", "now").expect("allowed");
        assert_eq!(new["status"]["conditions"][0]["reason"], "InsufficientPods");
    }

    #[test]
    fn pods_that_are_not_ready_cost_nothing_where_enough_others_are() {
        let ready =
            |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let enough = budget(json!({"currentHealthy": 2, "desiredHealthy": 2}));
        let short = budget(json!({"currentHealthy": 1, "desiredHealthy": 2}));
        let mut lenient = short.clone();
        lenient["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
        for (budget, status, expected) in [
            (&enough, "True", false),
            (&enough, "False", true),
            (&short, "False", false),
            (&lenient, "False", true),
            (&lenient, "True", false),
        ] {
            assert_eq!(costs_nothing(budget, &ready(status)), expected);
        }
    }
}
