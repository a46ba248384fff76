//! `Priority`: a pod gets the number behind its priority class, and there is one default class at most.

use serde_json::Value;

use super::PluginRefusal;
use super::attributes::{AdmissionRequest, Operation};
use crate::kinds::value::{ensure, is_true, set, set_default, text};
use crate::object;

/// Classes that every cluster has.
const SYSTEM: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// Whether it is about a new pod.
pub(super) fn concerns(request: &AdmissionRequest<'_>) -> bool {
    request.operation == Operation::Create && request.is_whole("", "Pod")
}

/// Gives a new pod the priority of its class.
pub(super) fn assign(classes: &[Value], pod: &mut Value) -> Result<(), PluginRefusal> {
    let spec = ensure(pod, "spec");
    let class = resolve(classes, text(&spec["priorityClassName"]))?;
    if let Some(name) = class.name {
        set(spec, "priorityClassName", name);
    }
    if let Some(given) = spec["priority"]
        .as_i64()
        .filter(|given| *given != class.value)
    {
        return Err(PluginRefusal(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {} from the given PriorityClass name",
            class.value
        )));
    }
    set(spec, "priority", class.value);
    let given = text(&spec["preemptionPolicy"]);
    if !given.is_empty() && given != class.policy {
        return Err(PluginRefusal(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {} from the given PriorityClass name",
            class.policy
        )));
    }
    set_default(spec, "preemptionPolicy", class.policy);
    Ok(())
}

struct Class<'a> {
    /// Set when the pod did not name it.
    name: Option<&'a str>,
    value: i64,
    policy: &'a str,
}

fn resolve<'a>(classes: &'a [Value], name: &str) -> Result<Class<'a>, PluginRefusal> {
    if name.is_empty() {
        return Ok(default_class(classes).map_or(
            Class {
                name: None,
                value: 0,
                policy: "PreemptLowerPriority",
            },
            |class| Class {
                name: Some(object::name(class)),
                ..read(class)
            },
        ));
    }
    let found = classes.iter().find(|class| object::name(class) == name);
    let system = || SYSTEM.iter().find(|(known, _)| *known == name);
    match (found, system()) {
        (Some(class), _) => Ok(read(class)),
        (None, Some((_, value))) => Ok(Class {
            name: None,
            value: *value,
            policy: "PreemptLowerPriority",
        }),
        (None, None) => Err(PluginRefusal(format!(
            "no PriorityClass with name {name} was found"
        ))),
    }
}

fn read(class: &Value) -> Class<'_> {
    let policy = text(&class["preemptionPolicy"]);
    Class {
        name: None,
        value: class["value"].as_i64().unwrap_or(0),
        policy: if policy.is_empty() {
            "PreemptLowerPriority"
        } else {
            policy
        },
    }
}

/// Of several defaults, which a race can make, the lowest counts.
fn default_class(classes: &[Value]) -> Option<&Value> {
    let defaults = classes
        .iter()
        .filter(|class| is_true(&class["globalDefault"]));
    defaults.min_by_key(|class| class["value"].as_i64().unwrap_or(0))
}

/// Refuses a second default class.
pub(super) fn validate(
    operation: Operation,
    classes: &[Value],
    class: &Value,
) -> Result<(), PluginRefusal> {
    if !is_true(&class["globalDefault"]) {
        return Ok(());
    }
    match default_class(classes).map(object::name) {
        Some(other) if operation == Operation::Create || other != object::name(class) => {
            Err(PluginRefusal(format!(
                "PriorityClass {other} is already marked as default. Only one default can exist"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn classes() -> Vec<Value> {
        vec![
            json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}),
            json!({"metadata": {"name": "usual"}, "value": 5, "globalDefault": true}),
        ]
    }

    #[test]
    fn pods_get_the_priority_of_their_class() {
        for (spec, expect) in [
            (json!({"priorityClassName": "high"}), Ok((1000, "Never"))),
            (json!({}), Ok((5, "PreemptLowerPriority"))),
            (
                json!({"priorityClassName": "system-node-critical"}),
                Ok((2_000_001_000, "PreemptLowerPriority")),
            ),
            (
                json!({"priorityClassName": "none"}),
                Err("no PriorityClass with name none was found"),
            ),
            (
                json!({"priorityClassName": "high", "priority": 7}),
                Err(
                    "the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name",
                ),
            ),
        ] {
            let mut pod = json!({"spec": spec});
            let found = assign(&classes(), &mut pod);
            let spec = &pod["spec"];
            match expect {
                Ok((value, policy)) => {
                    assert_eq!(found, Ok(()));
                    assert_eq!(spec["priority"], value);
                    assert_eq!(spec["preemptionPolicy"], policy);
                }
                Err(why) => assert_eq!(found, Err(why.into())),
            }
        }
    }

    #[test]
    fn there_is_one_default_class() {
        let second = json!({"metadata": {"name": "other"}, "value": 1, "globalDefault": true});
        let first = &classes()[1];
        assert_eq!(validate(Operation::Update, &classes(), first), Ok(()));
        assert_eq!(
            validate(Operation::Create, &classes(), &second),
            Err(
                "PriorityClass usual is already marked as default. Only one default can exist"
                    .into()
            )
        );
    }
}
