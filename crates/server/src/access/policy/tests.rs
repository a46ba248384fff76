//! What roles allow, as a table; and what must hold whatever the roles are.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::access::attributes::{Resource, Subject};
use crate::access::rule::{self, Missing};

/// `get apps/deployments/scale in ns named x`, or `get /healthz`: the parts after the resource may be absent.
fn asked(text: &str) -> Attributes<'_> {
    let (verb, rest) = text.split_once(' ').expect("a verb and a subject");
    let verb = Cow::Borrowed(verb);
    if rest.starts_with('/') && !rest.contains(' ') && !rest[1..].contains("pods") {
        let subject = Subject::Path(rest.into());
        return Attributes { verb, subject };
    }
    let (rest, name) = rest.split_once(" named ").unwrap_or((rest, ""));
    let (resource, namespace) = rest.split_once(" in ").unwrap_or((rest, ""));
    let mut parts = resource.split('/');
    let mut part = || parts.next().unwrap_or("");
    let resource = Resource {
        group: part(),
        version: "v1",
        plural: part(),
        subresource: part(),
        namespace,
        name: Cow::Borrowed(name),
    };
    let subject = Subject::Resource(resource);
    Attributes { verb, subject }
}

fn user(name: &str, groups: &[&str]) -> User {
    User::new(name, groups.iter().copied())
}

fn allowed(policy: &Policy, user: &User, question: &str) -> bool {
    matches!(policy.decide(user, &asked(question)), Verdict::Allowed(_))
}

fn cluster_role(name: &str, rules: Value) -> Value {
    json!({ "metadata": { "name": name }, "rules": rules })
}

fn cluster_binding(name: &str, role: &str, subjects: Value) -> Value {
    json!({
        "metadata": { "name": name },
        "roleRef": { "kind": "ClusterRole", "name": role },
        "subjects": subjects,
    })
}

/// A policy in which bob has these rules in the whole cluster.
fn bob_may(rules: Value) -> Policy {
    let mut policy = Policy::default();
    policy.put_cluster_role(&cluster_role("r", rules));
    let subjects = json!([{ "kind": "User", "name": "bob" }]);
    policy.put_binding(&cluster_binding("b", "r", subjects));
    policy
}

#[test]
fn rules_allow_what_they_say() {
    let pods = json!({ "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"] });
    let named = json!({
        "verbs": ["get", "update"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x", "y"],
    });
    let log = json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"] });
    let scale = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"] });
    let apps = json!({ "verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"] });
    let urls = json!({ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/metrics/*"] });
    let everything = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] });
    let every_url = json!({ "verbs": ["*"], "nonResourceURLs": ["*"] });
    for (rule, question, expected) in [
        (&pods, "get /pods in a named x", true),
        (&pods, "list /pods", true),
        (&pods, "watch /pods", false),
        (&pods, "get /pods/log in a named x", false),
        (&pods, "get apps/pods in a named x", false),
        (&pods, "get /podsx in a named x", false),
        (&pods, "get /healthz", false),
        (&named, "get /pods in a named x", true),
        (&named, "update /pods in a named y", true),
        (&named, "get /pods in a named z", false),
        (&named, "get /pods in a", false),
        (&log, "get /pods/log in a named x", true),
        (&log, "get /pods in a named x", false),
        (&log, "get /pods/status in a named x", false),
        (&scale, "update apps/deployments/scale in a named x", true),
        (&scale, "update ex.io/foos/scale in a named x", true),
        (&scale, "update apps/deployments in a named x", false),
        (
            &scale,
            "update apps/deployments/autoscale in a named x",
            false,
        ),
        (&apps, "delete apps/deployments in a named x", true),
        (&apps, "update apps/deployments/status in a named x", true),
        (&apps, "get /pods in a", false),
        (&urls, "get /healthz", true),
        (&urls, "get /healthz/ping", false),
        (&urls, "get /metrics/slis", true),
        (&urls, "get /metrics", false),
        (&urls, "post /healthz", false),
        (&everything, "impersonate /users named y", true),
        (&everything, "get /healthz", false),
        (&every_url, "head /healthz", true),
        (&every_url, "get /pods in a", false),
    ] {
        let policy = bob_may(json!([rule]));
        let bob = user("bob", &[]);
        assert_eq!(
            allowed(&policy, &bob, question),
            expected,
            "{rule}: {question}"
        );
        assert!(
            !allowed(&policy, &user("eve", &["bob"]), question),
            "{question}"
        );
    }
}

#[test]
fn bindings_reach_users_groups_and_service_accounts_in_their_namespace() {
    let mut policy = Policy::default();
    let rules = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
    policy.put_cluster_role(&cluster_role("reader", rules.clone()));
    policy.put_role(&json!({ "metadata": { "name": "local", "namespace": "a" }, "rules": rules }));
    let bind = |policy: &mut Policy, kind: &str, role: &str, subjects: Value| {
        policy.put_binding(&json!({
            "metadata": { "name": role, "namespace": "a" },
            "roleRef": { "kind": kind, "name": role }, "subjects": subjects,
        }));
    };
    bind(
        &mut policy,
        "ClusterRole",
        "reader",
        json!([{ "kind": "Group", "name": "team" }]),
    );
    let accounts = json!([
        { "kind": "ServiceAccount", "name": "own" },
        { "kind": "ServiceAccount", "name": "other", "namespace": "b" },
    ]);
    bind(&mut policy, "Role", "local", accounts);
    let (own, other) = (
        "system:serviceaccount:a:own",
        "system:serviceaccount:b:other",
    );
    for (who, question, expected) in [
        (user("bob", &["team"]), "get /pods in a named x", true),
        (user("bob", &["team"]), "get /pods in b named x", false),
        (user("bob", &["team"]), "get /pods", false),
        (user("team", &[]), "get /pods in a named x", false),
        (user(own, &[]), "get /pods in a named x", true),
        (user(other, &[]), "get /pods in a named x", true),
        (user(other, &[]), "get /pods in b named x", false),
        (
            user("system:serviceaccount:b:own", &[]),
            "get /pods in a named x",
            false,
        ),
    ] {
        assert_eq!(
            allowed(&policy, &who, question),
            expected,
            "{}: {question}",
            who.name
        );
    }
    policy.remove_binding("a", "local");
    assert!(!allowed(&policy, &user(own, &[]), "get /pods in a named x"));
    policy.remove_binding("a", "reader");
    assert!(policy.granted.is_empty() && policy.bindings.is_empty());
}

#[test]
fn verdicts_name_their_grounds() {
    let rules = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
    let mut policy = bob_may(rules);
    let gone = json!([{ "kind": "User", "name": "bob" }]);
    policy.put_binding(&cluster_binding("dangling", "nowhere", gone));
    let bob = user("bob", &[]);
    match policy.decide(&bob, &asked("get /pods in a named x")) {
        Verdict::Allowed(grounds) => assert_eq!(
            grounds.to_string(),
            r#"ClusterRoleBinding "b" of ClusterRole "r" to User "bob""#
        ),
        Verdict::Refused { .. } => panic!("bob may get pods"),
    }
    match policy.decide(&bob, &asked("list /pods")) {
        Verdict::Refused { missing } => assert_eq!(
            missing_text(&missing),
            r#"clusterrole.rbac.authorization.k8s.io "nowhere" not found"#
        ),
        Verdict::Allowed(_) => panic!("bob may not list pods"),
    }
}

#[test]
fn aggregated_roles_are_the_union_of_what_they_select() {
    let labelled = |name: &str, label: &str, resource: &str| {
        json!({
            "metadata": { "name": name, "labels": { (label): "true" } },
            "rules": [{ "verbs": ["get"], "apiGroups": [""], "resources": [resource] }],
        })
    };
    let whole = |name: &str, label: &str| {
        json!({
            "metadata": { "name": name },
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { (label): "true" } }] },
        })
    };
    let mut policy = Policy::default();
    policy.put_cluster_role(&labelled("b", "to-x", "pods"));
    policy.put_cluster_role(&labelled("a", "to-x", "secrets"));
    policy.put_cluster_role(&labelled("c", "to-y", "nodes"));
    policy.put_cluster_role(&labelled("d", "to-x", "pods"));
    let x = whole("x", "to-x");
    policy.put_cluster_role(&x);
    let rules = policy.aggregated(&x).expect("it is aggregated");
    let resources: Vec<_> = rules
        .iter()
        .map(|rule| rule.resources[0].as_str())
        .collect();
    assert_eq!(resources, ["secrets", "pods"]);
    let labels = policy.labels("c").expect("there");
    assert_eq!(policy.outdated("c", &[&labels]), Vec::<String>::new());
    let labels = policy.labels("b").expect("there");
    assert_eq!(policy.outdated("b", &[&labels]), ["x"]);
    assert_eq!(policy.aggregated(&labelled("b", "to-x", "pods")), None);
}

fn list(values: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    let value = proptest::sample::select(values).prop_map(str::to_owned);
    proptest::collection::vec(value, 1..3)
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let resource = (
        list(&["get", "list", "update", "*"]),
        list(&["", "apps", "*"]),
        list(&[
            "pods",
            "pods/log",
            "*/log",
            "*",
            "*/scale",
            "deployments/scale",
        ]),
        proptest::option::of(list(&["x", "y"])),
    );
    let resource = resource.prop_map(|(verbs, api_groups, resources, names)| Rule {
        verbs,
        api_groups,
        resources,
        resource_names: names.unwrap_or_default(),
        non_resource_urls: Vec::new(),
    });
    let url = (list(&["get", "*"]), list(&["/a", "/a/*", "*"]));
    let url = url.prop_map(|(verbs, non_resource_urls)| Rule {
        verbs,
        non_resource_urls,
        ..Rule::default()
    });
    prop_oneof![4 => resource, 1 => url]
}

fn questions() -> Vec<String> {
    let mut all = vec![
        "get /a".to_owned(),
        "get /a/b".to_owned(),
        "post /a".to_owned(),
    ];
    for verb in ["get", "list", "update", "delete"] {
        for group in ["", "apps"] {
            for resource in ["pods", "pods/log", "deployments/scale", "deployments"] {
                for name in ["", " named x", " named z"] {
                    all.push(format!("{verb} {group}/{resource} in n{name}"));
                }
            }
        }
    }
    all
}

fn rules_of(rules: &[Rule]) -> Value {
    serde_json::to_value(rules).expect("plain data")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn removing_a_rule_never_allows_more(rules in proptest::collection::vec(any_rule(), 1..5), at: prop::sample::Index) {
        let bob = user("bob", &[]);
        let whole = bob_may(rules_of(&rules));
        let mut fewer = rules.clone();
        fewer.remove(at.index(rules.len()));
        let less = bob_may(rules_of(&fewer));
        for question in questions() {
            prop_assert!(allowed(&whole, &bob, &question) || !allowed(&less, &bob, &question), "{}", question);
        }
    }

    #[test]
    fn rules_that_cover_others_allow_all_that_they_allow(
        held in proptest::collection::vec(any_rule(), 0..4),
        wanted in proptest::collection::vec(any_rule(), 1..4),
    ) {
        let bob = user("bob", &[]);
        let (strong, weak) = (bob_may(rules_of(&held)), bob_may(rules_of(&wanted)));
        let missing = rule::missing(&held, &wanted);
        if missing.is_none() {
            for question in questions() {
                prop_assert!(allowed(&strong, &bob, &question) || !allowed(&weak, &bob, &question), "{}", question);
            }
        }
        if let Some(Missing::Rules(missing)) = missing {
            // With what was missing, nothing is.
            let together: Vec<Rule> = held.iter().cloned().chain(missing).collect();
            prop_assert_eq!(rule::missing(&together, &wanted), None);
        }
    }
}
