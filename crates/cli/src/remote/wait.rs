//! Waits until applied objects do what they are for, and tells how far they are.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::core::DynamicObject;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::Target;

/// How often is looked.
const STEP: Duration = Duration::from_millis(100);

/// Why an object is not yet as it should be.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NotReady {
    /// What the object itself says.
    #[error("{0}")]
    Reported(String),
    #[error("{0} is not true yet")]
    Condition(String),
    #[error("not established yet")]
    NotEstablished,
    #[error("{available} of {wanted} pods are available")]
    Pods { available: i64, wanted: i64 },
}

/// Waits for all of these objects that something can be waited for, and for a condition on each of them if one is named.
///
/// # Errors
/// When it takes longer than `patience`, with the reason that the object gives.
pub(crate) async fn until_ready(
    targets: &[Target],
    condition: Option<&str>,
    patience: Duration,
) -> anyhow::Result<()> {
    let end = Instant::now() + patience;
    for target in targets {
        let kind = target
            .object
            .types
            .as_ref()
            .map(|types| types.kind.as_str());
        match (kind, condition) {
            (_, Some(name)) => until(target, |object| holds(object, name), end).await?,
            (Some("CustomResourceDefinition"), None) => until(target, established, end).await?,
            (Some("Deployment"), None) => until(target, available, end).await?,
            _ => {}
        }
    }
    Ok(())
}

/// Waits until an object is as it should be. `state` says whether it is, and if not, why.
async fn until(
    target: &Target,
    state: impl Fn(&Value) -> Result<(), NotReady>,
    end: Instant,
) -> anyhow::Result<()> {
    let mut printed = String::new();
    loop {
        let object = target.api.get(target.name()).await;
        let object = object.with_context(|| format!("{} cannot be read", target.shown()))?;
        let Err(not_ready) = state(&json(&object)) else {
            break;
        };
        let reason = not_ready.to_string();
        if Instant::now() >= end {
            bail!(
                "{} is not ready in time: {reason}. kubectl describe may say more",
                target.shown()
            );
        }
        if reason != printed {
            println!("  {} waits: {reason}", target.shown());
            printed = reason;
        }
        sleep(STEP).await;
    }
    println!("  {} is ready", target.shown());
    Ok(())
}

fn json(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// Whether a condition is true, and about the object as it is now.
fn holds(object: &Value, name: &str) -> Result<(), NotReady> {
    let seen = &object["status"]["observedGeneration"];
    match condition(object, name) {
        Some(("True", _)) if seen.is_null() || *seen == object["metadata"]["generation"] => Ok(()),
        Some((_, message)) if !message.is_empty() => Err(reported(message)),
        _ => Err(NotReady::Condition(name.to_owned())),
    }
}

fn established(definition: &Value) -> Result<(), NotReady> {
    match condition(definition, "Established") {
        Some(("True", _)) => Ok(()),
        _ => match condition(definition, "NamesAccepted") {
            Some(("False", message)) => Err(reported(message)),
            _ => Err(NotReady::NotEstablished),
        },
    }
}

fn available(deployment: &Value) -> Result<(), NotReady> {
    let (spec, status) = (&deployment["spec"], &deployment["status"]);
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let seen = status["observedGeneration"] == deployment["metadata"]["generation"];
    if seen && count("updatedReplicas") >= wanted && count("availableReplicas") >= wanted {
        return Ok(());
    }
    for failure in ["ReplicaFailure", "Progressing"] {
        if let Some((status, message)) = condition(deployment, failure)
            && (status == "True") == (failure == "ReplicaFailure")
        {
            return Err(reported(message));
        }
    }
    let available = count("availableReplicas");
    Err(NotReady::Pods { available, wanted })
}

fn reported(message: &str) -> NotReady {
    NotReady::Reported(message.to_owned())
}

/// The status and message of a condition.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == kind)?;
    Some((
        found["status"].as_str()?,
        found["message"].as_str().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn deployment_is_ready_when_its_newest_pods_are_available() {
        let deployment = |generation: i64, updated: i64, available: i64| {
            json!({
                "metadata": {"generation": 2},
                "spec": {"replicas": 2},
                "status": {
                    "observedGeneration": generation,
                    "updatedReplicas": updated,
                    "availableReplicas": available,
                },
            })
        };
        for (generation, updated, count, ready) in [
            (2, 2, 2, true),
            (1, 2, 2, false),
            (2, 1, 2, false),
            (2, 2, 1, false),
        ] {
            let state = available(&deployment(generation, updated, count));
            assert_eq!(state.is_ok(), ready, "{generation} {updated} {count}");
        }
    }

    #[test]
    fn condition_holds_when_it_is_about_the_object_as_it_is() {
        let object = |seen: serde_json::Value, status: &str| {
            json!({
                "metadata": {"generation": 2},
                "status": {
                    "observedGeneration": seen,
                    "conditions": [{"type": "Ready", "status": status, "message": "why"}],
                },
            })
        };
        for (seen, status, expected) in [
            (json!(2), "True", Ok(())),
            (json!(null), "True", Ok(())),
            (json!(1), "True", Err(reported("why"))),
            (json!(2), "False", Err(reported("why"))),
        ] {
            assert_eq!(holds(&object(seen, status), "Ready"), expected);
        }
        assert!(holds(&json!({}), "Ready").is_err());
    }

    #[test]
    fn definition_says_why_it_is_not_established() {
        let refused = json!({"status": {"conditions": [
            {"type": "NamesAccepted", "status": "False", "message": "\"a\" is already in use"},
        ]}});
        assert_eq!(
            established(&refused),
            Err(reported("\"a\" is already in use"))
        );
        let there = json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}});
        assert_eq!(established(&there), Ok(()));
    }
}
