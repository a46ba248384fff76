//! The FlowSchemas and PriorityLevelConfigurations that every cluster has.
//!
//! Those of Kubernetes, by the same names (`k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap`). The mandatory ones are
//! always there; the others are suggestions that users may change once they have taken the annotation off.

use serde_json::{Value, json};

use crate::core::Core;
use crate::kinds::value::alike;
use crate::object;
use crate::status::ApiError;

pub(super) const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";
/// The objects without which not every request would have a level.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

impl Core {
    /// Makes sure that all of the objects are there, and are what they should be unless users changed them.
    pub(crate) async fn ensure_flow_control(&self) -> Result<(), ApiError> {
        self.ensure_flow_objects(|_| true).await?;
        self.load_flow_control().map(drop)
    }

    /// Brings back the mandatory objects that somebody deleted or changed.
    pub(super) async fn ensure_mandatory_flow_control(&self) -> Result<(), ApiError> {
        self.ensure_flow_objects(is_mandatory).await
    }

    async fn ensure_flow_objects(&self, concerns: fn(&Value) -> bool) -> Result<(), ApiError> {
        let resources = self.registry.now();
        for (plural, objects) in objects() {
            let served = resources.builtin(GROUP, "v1", plural);
            for wanted in objects.into_iter().filter(concerns) {
                let stored = served.collection.get(object::name(&wanted));
                let stored = stored.map(|record| served.revive(&record)).transpose()?;
                // Nothing is written while there is nothing to change: every write is followed by a look at all.
                if stored.is_none_or(|stored| !alike(&stored["spec"], &wanted["spec"])) {
                    self.ensure_object(&served, wanted, restore_spec).await?;
                }
            }
        }
        Ok(())
    }
}

fn is_mandatory(object: &Value) -> bool {
    MANDATORY.contains(&object::name(object))
}

fn restore_spec(object: &mut Value, wanted: &Value) {
    if is_mandatory(wanted) || object["metadata"]["annotations"][AUTO_UPDATE] == "true" {
        object["spec"] = wanted["spec"].clone();
    }
}

/// The objects by their plurals.
fn objects() -> [(&'static str, Vec<Value>); 2] {
    [
        ("prioritylevelconfigurations", priority_levels()),
        ("flowschemas", flow_schemas()),
    ]
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": { "name": name, "annotations": { AUTO_UPDATE: "true" } },
        "spec": spec,
    })
}

fn priority_levels() -> Vec<Value> {
    let level = |name: &str, spec| object("PriorityLevelConfiguration", name, spec);
    let queue = |queues: u32, hand_size: u32| {
        let queuing = json!({ "queues": queues, "handSize": hand_size, "queueLengthLimit": 50 });
        json!({ "type": "Queue", "queuing": queuing })
    };
    let limited = |name: &str, shares: u32, lendable: u32, response: Value| {
        let limits = json!({
            "nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response,
        });
        level(name, json!({ "type": "Limited", "limited": limits }))
    };
    let exempt = json!({ "nominalConcurrencyShares": 0, "lendablePercent": 0 });
    vec![
        level("exempt", json!({ "type": "Exempt", "exempt": exempt })),
        limited("catch-all", 5, 0, json!({ "type": "Reject" })),
        limited("system", 30, 33, queue(64, 6)),
        limited("node-high", 40, 25, queue(64, 6)),
        limited("leader-election", 10, 0, queue(16, 4)),
        limited("workload-high", 40, 50, queue(128, 6)),
        limited("workload-low", 100, 90, queue(128, 6)),
        limited("global-default", 20, 50, queue(128, 6)),
    ]
}

/// A schema's name, level, precedence and distinguisher (empty for none), and its rule.
fn schema(name: &str, level: &str, precedence: u32, distinguisher: &str, rule: Value) -> Value {
    let mut spec = json!({
        "priorityLevelConfiguration": { "name": level }, "matchingPrecedence": precedence, "rules": [rule],
    });
    if !distinguisher.is_empty() {
        spec["distinguisherMethod"] = json!({ "type": distinguisher });
    }
    object("FlowSchema", name, spec)
}

fn flow_schemas() -> Vec<Value> {
    let everybody = || groups(&[UNAUTHENTICATED, AUTHENTICATED]);
    let nodes = || groups(&["system:nodes"]);
    let leases = || {
        resource_rule(
            &["get", "create", "update"],
            "coordination.k8s.io",
            &["leases"],
        )
    };
    let leaders = [users(&[CONTROLLER_MANAGER, SCHEDULER]), accounts(&["*"])].concat();
    let endpoints = [
        users(&[CONTROLLER_MANAGER]),
        accounts(&["endpoint-controller", "endpointslicemirroring-controller"]),
    ];
    let node_resources = {
        let mut nodes = resource_rule(&["*"], "", &["nodes", "nodes/status"]);
        nodes["clusterScope"] = json!(true);
        [
            nodes,
            resource_rule(&["*"], "coordination.k8s.io", &["leases"]),
        ]
    };
    let endpoint_rule = resource_rule(&["get", "create", "update"], "", &["endpoints"]);
    vec![
        schema("exempt", "exempt", 1, "", all(groups(&["system:masters"]))),
        schema("catch-all", "catch-all", 10_000, "ByUser", all(everybody())),
        schema("probes", "exempt", 2, "", probes(everybody())),
        schema(
            "system-leader-election",
            "leader-election",
            100,
            "ByUser",
            some(leaders, &[leases()]),
        ),
        schema(
            "endpoint-controller",
            "workload-high",
            150,
            "ByUser",
            some(endpoints.concat(), &[endpoint_rule]),
        ),
        schema(
            "workload-leader-election",
            "leader-election",
            200,
            "ByUser",
            some(accounts(&["*"]), &[leases()]),
        ),
        schema(
            "system-node-high",
            "node-high",
            400,
            "ByUser",
            some(nodes(), &node_resources),
        ),
        schema("system-nodes", "system", 500, "ByUser", all(nodes())),
        schema(
            "kube-controller-manager",
            "workload-high",
            800,
            "ByNamespace",
            all(users(&[CONTROLLER_MANAGER])),
        ),
        schema(
            "kube-scheduler",
            "workload-high",
            800,
            "ByNamespace",
            all(users(&[SCHEDULER])),
        ),
        schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            "ByNamespace",
            all(accounts(&["*"])),
        ),
        schema(
            "service-accounts",
            "workload-low",
            9_000,
            "ByUser",
            all(groups(&["system:serviceaccounts"])),
        ),
        schema(
            "global-default",
            "global-default",
            9_900,
            "ByUser",
            all(everybody()),
        ),
    ]
}

fn users(names: &[&str]) -> Vec<Value> {
    let subject = |name| json!({ "kind": "User", "user": { "name": name } });
    names.iter().map(subject).collect()
}

fn groups(names: &[&str]) -> Vec<Value> {
    let subject = |name| json!({ "kind": "Group", "group": { "name": name } });
    names.iter().map(subject).collect()
}

/// Service accounts of `kube-system`.
fn accounts(names: &[&str]) -> Vec<Value> {
    let subject = |name| {
        let account = json!({ "namespace": "kube-system", "name": name });
        json!({ "kind": "ServiceAccount", "serviceAccount": account })
    };
    names.iter().map(subject).collect()
}

/// Objects of these resources in all namespaces.
fn resource_rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({ "verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"] })
}

/// A rule for some of what the subjects do.
fn some(subjects: Vec<Value>, resources: &[Value]) -> Value {
    json!({ "subjects": subjects, "resourceRules": resources })
}

/// A rule for everything that the subjects do.
fn all(subjects: Vec<Value>) -> Value {
    let mut resources = resource_rule(&["*"], "*", &["*"]);
    resources["clusterScope"] = json!(true);
    let paths = json!({ "verbs": ["*"], "nonResourceURLs": ["*"] });
    json!({ "subjects": subjects, "resourceRules": [resources], "nonResourceRules": [paths] })
}

/// A rule for health checks.
fn probes(subjects: Vec<Value>) -> Value {
    let paths = json!({ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"] });
    json!({ "subjects": subjects, "nonResourceRules": [paths] })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::access::Attributes;
    use crate::auth::User;
    use crate::flow::{FlowControl, RequestLimits};
    use crate::http::path;
    use crate::http::query::Query;
    use crate::request::RequestInfo;

    #[test]
    fn the_standard_schemas_sort_requests_as_kubernetes_does() {
        let flow = FlowControl::new(&RequestLimits::default());
        flow.configure(&flow_schemas(), &priority_levels());
        let level = |user: &str, group: &str, request: &str| {
            let (method, path) = request.split_once(' ').expect("a method and a path");
            let method: Method = method.parse().expect("a method");
            let info = RequestInfo::of(&method, path, path::parse(path), Query::default());
            let asked = Attributes::of_request(&info);
            let user = User::new(user, [group]).authenticated();
            let found = flow
                .classify(&user, &asked)
                .expect("every request has a level");
            found
                .flow
                .map_or("exempt".into(), |id| format!("{} {}", id.level, id.flow))
        };
        let lease = "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l";
        let pods = "GET /api/v1/namespaces/a/pods";
        for (user, group, request, expected) in [
            ("kubernetes-admin", "system:masters", pods, "exempt"),
            ("anybody", "people", "GET /readyz", "exempt"),
            (
                "system:node:n",
                "system:nodes",
                "PATCH /api/v1/nodes/n/status",
                "node-high system-node-high/system:node:n",
            ),
            (
                "system:node:n",
                "system:nodes",
                lease,
                "node-high system-node-high/system:node:n",
            ),
            (
                "system:node:n",
                "system:nodes",
                pods,
                "system system-nodes/system:node:n",
            ),
            (
                SCHEDULER,
                "",
                lease,
                "leader-election system-leader-election/system:kube-scheduler",
            ),
            (SCHEDULER, "", pods, "workload-high kube-scheduler/a"),
            (
                "system:serviceaccount:kube-system:x",
                "system:serviceaccounts",
                pods,
                "workload-high kube-system-service-accounts/a",
            ),
            (
                "system:serviceaccount:team:x",
                "system:serviceaccounts",
                pods,
                "workload-low service-accounts/system:serviceaccount:team:x",
            ),
            ("bob", "people", pods, "global-default global-default/bob"),
            (
                "bob",
                "people",
                "GET /apis",
                "global-default global-default/bob",
            ),
        ] {
            assert_eq!(level(user, group, request), expected, "{user}: {request}");
        }
    }
}
