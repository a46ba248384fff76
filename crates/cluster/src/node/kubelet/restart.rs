//! Whether a container that has ended is started again.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule};

use crate::node::script::{Restart, Role};

/// What follows from the end of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    No,
    Yes,
    /// All containers of the pod start again, init containers first.
    Everybody,
}

/// Whether a container starts again after it exited with a code.
///
/// Mirrors `podutil.ContainerShouldRestart` and `FindMatchingContainerRestartRule`; an init container of a pod that is
/// restarted always starts again only when it failed, and ephemeral ones never do.
pub(crate) fn again(container: &Container, role: Role, policy: Restart, code: i32) -> Again {
    if role == Role::Ephemeral {
        return Again::No;
    }
    if container.restart_policy.is_some() {
        let mut rules = container.restart_policy_rules.iter().flatten();
        let matched = rules.find(|rule| matches(rule, code));
        match matched.map(|rule| rule.action.as_str()) {
            Some("Restart") => return Again::Yes,
            Some("RestartAllContainers") => return Again::Everybody,
            _ => {}
        }
    }
    let own = match (container.restart_policy.as_deref(), role) {
        (Some("Always"), _) => Restart::Always,
        (Some("OnFailure"), _) => Restart::OnFailure,
        (Some("Never"), _) => Restart::Never,
        (_, Role::Init) if policy == Restart::Always => Restart::OnFailure,
        _ => policy,
    };
    let starts = match own {
        Restart::Always => true,
        Restart::OnFailure => code != 0,
        Restart::Never => false,
    };
    if starts { Again::Yes } else { Again::No }
}

fn matches(rule: &ContainerRestartRule, code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else {
        return false;
    };
    let listed = codes.values.iter().flatten().any(|value| *value == code);
    match codes.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// `podutil.ContainerShouldRestart`, pkg/api/v1/pod/util.go.
    #[test]
    fn rules_of_a_container_come_before_its_policy_and_that_before_the_pods() {
        let rule = |operator: &str, codes: Value, action: &str| json!([{"action": action, "exitCodes": {"operator": operator, "values": codes}}]);
        let cases = [
            (json!({}), Role::Main, Restart::Always, 0, Again::Yes),
            (json!({}), Role::Main, Restart::OnFailure, 0, Again::No),
            (json!({}), Role::Main, Restart::Never, 1, Again::No),
            (json!({}), Role::Init, Restart::Always, 0, Again::No),
            (json!({}), Role::Init, Restart::Always, 1, Again::Yes),
            (json!({}), Role::Ephemeral, Restart::Always, 1, Again::No),
            (
                json!({"restartPolicy": "Always"}),
                Role::Sidecar,
                Restart::Never,
                0,
                Again::Yes,
            ),
            (
                json!({"restartPolicy": "Never"}),
                Role::Main,
                Restart::Always,
                1,
                Again::No,
            ),
            (
                json!({"restartPolicy": "OnFailure"}),
                Role::Main,
                Restart::Never,
                3,
                Again::Yes,
            ),
            (
                json!({"restartPolicy": "Never", "restartPolicyRules": rule("In", json!([42]), "Restart")}),
                Role::Main,
                Restart::Never,
                42,
                Again::Yes,
            ),
            (
                json!({"restartPolicy": "Never", "restartPolicyRules": rule("In", json!([42]), "Restart")}),
                Role::Main,
                Restart::Never,
                1,
                Again::No,
            ),
            (
                json!({"restartPolicy": "Never", "restartPolicyRules": rule("NotIn", json!([0]), "Restart")}),
                Role::Init,
                Restart::Never,
                9,
                Again::Yes,
            ),
            (
                json!({"restartPolicy": "Never", "restartPolicyRules": rule("In", json!([7]), "RestartAllContainers")}),
                Role::Main,
                Restart::Never,
                7,
                Again::Everybody,
            ),
            // Rules without a policy of the container are not looked at.
            (
                json!({"restartPolicyRules": rule("In", json!([1]), "Restart")}),
                Role::Main,
                Restart::Never,
                1,
                Again::No,
            ),
        ];
        for (more, role, policy, code, expect) in cases {
            let mut container = json!({"name": "c"});
            for (key, value) in more.as_object().expect("fields") {
                container[key] = value.clone();
            }
            let container: Container = serde_json::from_value(container).expect("a container");
            assert_eq!(
                again(&container, role, policy, code),
                expect,
                "{more} {role:?} {policy:?} {code}"
            );
        }
    }
}
