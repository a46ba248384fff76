//! What the standards say of pods.

use serde_json::{Value, json};

use super::*;

fn policy(labels: Value) -> Policy {
    let (policy, errors) = Policy::read(&labels);
    assert_eq!(errors, []);
    policy
}

fn enforcing(level: &str) -> Policy {
    policy(json!({"pod-security.kubernetes.io/enforce": level}))
}

fn check(level: &str, spec: Value, expect: Option<&str>) {
    let verdict = judge(&enforcing(level), Concern::Pod, (&json!({}), &spec));
    let expect =
        expect.map(|details| format!("violates PodSecurity \"{level}:latest\": {details}"));
    assert_eq!(verdict.refusal, expect, "{spec}");
}

fn container(context: Value) -> Value {
    json!({"containers": [{"name": "a", "image": "i", "securityContext": context}]})
}

#[test]
fn the_restricted_level_wants_everything_said() {
    check(
        "restricted",
        json!({"containers": [{"name": "a", "image": "i"}]}),
        Some(
            "allowPrivilegeEscalation != false (container \"a\" must set securityContext.allowPrivilegeEscalation=false), \
             unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]), \
             runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true), \
             seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
        ),
    );
    let good = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    check("restricted", container(good), None);
}

#[test]
fn the_baseline_refuses_what_reaches_the_node() {
    let cases = [
        (container(json!({})), None),
        (
            container(json!({"privileged": true})),
            Some("privileged (container \"a\" must not set securityContext.privileged=true)"),
        ),
        (
            json!({"hostNetwork": true, "hostPID": true}),
            Some("host namespaces (hostNetwork=true, hostPID=true)"),
        ),
        (
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
            Some("hostPath volumes (volume \"v\")"),
        ),
        (
            container(json!({"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}})),
            Some(
                "non-default capabilities (container \"a\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add)",
            ),
        ),
        (
            json!({"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}]}]}),
            Some("hostPort (container \"a\" uses hostPorts 443, 80)"),
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}),
            Some("forbidden sysctls (kernel.msgmax)"),
        ),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
            Some(
                "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
            ),
        ),
        (
            json!({"securityContext": {"seLinuxOptions": {"type": "x", "user": "u"}}}),
            Some(
                "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; user may not be set)",
            ),
        ),
    ];
    for (spec, expect) in cases {
        check("baseline", spec, expect);
    }
}

#[test]
fn volumes_are_known_by_their_kind() {
    let mut spec = container(json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    }));
    spec["volumes"] = json!([{"name": "n", "nfs": {}}, {"name": "s", "secret": {}}]);
    check(
        "restricted",
        spec,
        Some("restricted volume types (volume \"n\" uses restricted volume type \"nfs\")"),
    );
}

#[test]
fn templates_earn_warnings() {
    let spec = container(json!({"privileged": true}));
    let verdict = judge(
        &enforcing("baseline"),
        Concern::Template,
        (&json!({}), &spec),
    );
    assert_eq!(verdict.refusal, None);
    assert_eq!(
        verdict.warning.as_deref(),
        Some(
            "would violate PodSecurity \"baseline:latest\": privileged (container \"a\" must not set securityContext.privileged=true)"
        )
    );
}

#[test]
fn labels_are_read_with_their_versions() {
    let read = policy(json!({
        "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.30",
        "pod-security.kubernetes.io/warn": "restricted",
    }));
    assert_eq!(read.enforce.to_string(), "baseline:v1.30");
    assert_eq!(read.warn.to_string(), "restricted:latest");
    let (strict, errors) = Policy::read(&json!({"pod-security.kubernetes.io/enforce": "x"}));
    assert_eq!(strict.enforce.to_string(), "restricted:latest");
    assert_eq!(
        errors[0].to_string(),
        "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"x\": must be one of privileged, baseline, restricted"
    );
}

#[test]
fn a_namespace_that_becomes_stricter_tells_of_its_pods() {
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": container(json!({"privileged": true}))});
    let (old, new) = (enforcing("privileged"), enforcing("baseline"));
    let warnings = judge_namespace("n", &new, &old, || vec![pod("b"), pod("a")]);
    assert_eq!(
        warnings,
        [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 1 other pod): privileged",
        ]
    );
    assert_eq!(
        judge_namespace("n", &old, &new, || vec![pod("a")]),
        Vec::<String>::new()
    );
}
