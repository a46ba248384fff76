//! Controllers, scheduler and nodes are the users that they are on a real cluster, and need no more than their roles.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    Endpoints, Namespace, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota, Secret,
    Service, ServiceAccount,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, EvictParams};
use kubewright_cluster::{Clock, Cluster};
use kubewright_server::Authorization;
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{create, here, until};

/// What a user did: the verb and the resource, with its subresource.
type Deeds = BTreeMap<String, BTreeSet<String>>;

fn template(app: &str, more: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "sim"}]});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({"metadata": {"labels": {"app": app}}, "spec": spec})
}

fn workload(kind: &str, app: &str, more: Value) -> Value {
    let mut spec =
        json!({"selector": {"matchLabels": {"app": app}}, "template": template(app, json!({}))});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": app}, "spec": spec})
}

/// Makes something of everything that a controller looks after.
async fn be_busy(cluster: &Cluster) {
    let replicas = json!({"replicas": 2});
    create::<Deployment>(&here(cluster), workload("Deployment", "web", replicas)).await;
    create::<DaemonSet>(&here(cluster), workload("DaemonSet", "agent", json!({}))).await;
    let claim = |name: &str| {
        let storage = json!({"requests": {"storage": "1Gi"}});
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}})
    };
    let stateful =
        json!({"replicas": 2, "serviceName": "db", "volumeClaimTemplates": [claim("data")]});
    create::<StatefulSet>(&here(cluster), workload("StatefulSet", "db", stateful)).await;
    create::<PersistentVolumeClaim>(&here(cluster), claim("lonely")).await;
    let once = template("once", json!({"restartPolicy": "Never"}));
    let job = json!({"template": once, "ttlSecondsAfterFinished": 30});
    create::<Job>(
        &here(cluster),
        json!({"metadata": {"name": "once"}, "spec": job}),
    )
    .await;
    let cron = json!({"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": once}}});
    create::<CronJob>(
        &here(cluster),
        json!({"metadata": {"name": "tick"}, "spec": cron}),
    )
    .await;
    let old =
        json!({"replicas": 1, "selector": {"app": "old"}, "template": template("old", json!({}))});
    create::<ReplicationController>(
        &here(cluster),
        json!({"metadata": {"name": "old"}, "spec": old}),
    )
    .await;
    let scaler = json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 4,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "100m"}}}]});
    create::<HorizontalPodAutoscaler>(
        &here(cluster),
        json!({"metadata": {"name": "web"}, "spec": scaler}),
    )
    .await;
    let budget = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    create::<PodDisruptionBudget>(
        &here(cluster),
        json!({"metadata": {"name": "web"}, "spec": budget}),
    )
    .await;
    let ports = json!([{"port": 80}]);
    let service = json!({"selector": {"app": "web"}, "ports": ports});
    create::<Service>(
        &here(cluster),
        json!({"metadata": {"name": "web"}, "spec": service}),
    )
    .await;
    create::<Service>(
        &here(cluster),
        json!({"metadata": {"name": "own"}, "spec": {"ports": ports}}),
    )
    .await;
    let subsets = json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": ports}]);
    create::<Endpoints>(
        &here(cluster),
        json!({"metadata": {"name": "own"}, "subsets": subsets}),
    )
    .await;
    let hard = json!({"hard": {"pods": "100"}});
    create::<ResourceQuota>(
        &here(cluster),
        json!({"metadata": {"name": "all"}, "spec": hard}),
    )
    .await;
    let account = json!({"kubernetes.io/service-account.name": "default"});
    let token = json!({"metadata": {"name": "token", "annotations": account}, "type": "kubernetes.io/service-account-token"});
    create::<Secret>(&here(cluster), token).await;
    let volume =
        json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim("v")["spec"]}}});
    let pod = template("scratch", json!({"volumes": [volume]}));
    create::<Pod>(
        &here(cluster),
        json!({"metadata": {"name": "scratch"}, "spec": pod["spec"]}),
    )
    .await;
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    create(&namespaces, json!({"metadata": {"name": "passing"}})).await;
}

/// Deletes, evicts, updates and removes, and lets time pass.
async fn be_troubled(cluster: &Cluster) {
    let ready = |count: i64| move |set: &Value| set["status"]["readyReplicas"] == count;
    until(&here::<Deployment>(cluster), "web", ready(2)).await;
    until(&here::<StatefulSet>(cluster), "db", ready(2)).await;
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "sim:2"}]}}}});
    world::change(&here::<Deployment>(cluster), "web", image.clone()).await;
    world::change(&here::<StatefulSet>(cluster), "db", image.clone()).await;
    world::change(&here::<DaemonSet>(cluster), "agent", image).await;
    sleep(Duration::from_secs(180)).await;
    let pods = here::<Pod>(cluster);
    let mut all = world::all(&pods).await.into_iter();
    let web = all.find(|pod| pod["metadata"]["labels"]["app"] == "web");
    let web = web.expect("the Deployment has pods")["metadata"]["name"].clone();
    let evicted = pods
        .evict(web.as_str().expect("a name"), &EvictParams::default())
        .await;
    evicted.expect("the budget allows it");
    pods.delete("scratch", &DeleteParams::default())
        .await
        .expect("it is deleted");
    let claims = here::<PersistentVolumeClaim>(cluster);
    claims
        .delete("lonely", &DeleteParams::default())
        .await
        .expect("it is deleted");
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    namespaces
        .delete("passing", &DeleteParams::default())
        .await
        .expect("it is deleted");
    let sets = here::<Deployment>(cluster);
    cluster.nodes().stop("node-2").await.expect("it is there");
    sleep(Duration::from_secs(600)).await;
    cluster.nodes().remove("node-2").await.expect("it is there");
    sets.delete("web", &DeleteParams::foreground())
        .await
        .expect("it is deleted");
    sleep(Duration::from_secs(600)).await;
}

/// What the audit log says of writes and refusals once it is complete.
fn read(path: &Path) -> (Deeds, Vec<String>) {
    let (mut deeds, mut refused) = (Deeds::new(), Vec::new());
    let log = std::fs::read_to_string(path).expect("there is an audit log");
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        let user = event["user"]["username"].as_str().unwrap_or_default();
        let groups = event["user"]["groups"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let masters = groups.iter().any(|group| group == "system:masters");
        // Whoever installs the cluster and the test itself.
        assert!(!masters || user == "kubernetes-admin", "{line}");
        let about = &event["objectRef"];
        let resource = match about["subresource"].as_str() {
            Some(part) => format!("{}/{part}", about["resource"].as_str().unwrap_or_default()),
            None => about["resource"].as_str().unwrap_or_default().to_owned(),
        };
        let verb = event["verb"].as_str().unwrap_or_default();
        let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
        let deed = format!("{verb} {resource}");
        // Other refusals are not about roles: a namespace that goes takes nothing new, whoever asks.
        if event["annotations"]["authorization.k8s.io/decision"] == "forbid" {
            refused.push(format!("{user}: {deed} {}", event["requestURI"]));
        }
        if code < 300 && !matches!(verb, "get" | "list" | "watch") {
            deeds.entry(user.to_owned()).or_default().insert(deed);
        }
    }
    (deeds, refused)
}

/// Mirrors `controller_policy.go: buildControllerRoles`, `policy.go: clusterRoles` and `node_authorizer.go`.
#[tokio::test(start_paused = true)]
async fn components_of_a_busy_cluster_are_who_they_are_and_need_no_more_than_their_roles() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit.log");
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder().nodes(2).clock(clock).seed(7);
    let builder = builder.authorization(Authorization::Rbac).audit_log(&path);
    let cluster = builder.start().await.expect("starts");
    be_busy(&cluster).await;
    be_troubled(&cluster).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "kube-system");
    let accounts = accounts.list_metadata(&Default::default()).await;
    let accounts = accounts.expect("an answer").items.into_iter();
    let accounts: BTreeSet<_> = accounts.filter_map(|it| it.metadata.name).collect();
    cluster.stop().await;
    let (deeds, refused) = read(&path);
    for user in deeds.keys() {
        let name = user.strip_prefix("system:serviceaccount:kube-system:");
        let there = name.is_none_or(|name| accounts.contains(name));
        assert!(there, "{user} has no service account: {accounts:?}");
    }
    assert!(refused.is_empty(), "refused: {refused:#?}");
    let account = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    let node = |name: &str| format!("system:node:{name}");
    for (user, deed) in [
        ("system:kube-scheduler".to_owned(), "create pods/binding"),
        (node("node-1"), "create nodes"),
        (node("node-2"), "create leases"),
        (node("node-2"), "patch pods/status"),
        (node("node-1"), "create events"),
        (node("node-1"), "delete pods"),
        (account("deployment-controller"), "create replicasets"),
        (
            account("deployment-controller"),
            "update deployments/status",
        ),
        (account("deployment-controller"), "create events"),
        (account("replicaset-controller"), "create pods"),
        (account("replication-controller"), "create pods"),
        (
            account("statefulset-controller"),
            "create persistentvolumeclaims",
        ),
        (account("daemon-set-controller"), "update daemonsets/status"),
        (account("job-controller"), "patch pods"),
        (account("cronjob-controller"), "create jobs"),
        (account("ttl-after-finished-controller"), "delete jobs"),
        (account("endpointslice-controller"), "create endpointslices"),
        (account("endpoint-controller"), "create endpoints"),
        (
            account("endpointslicemirroring-controller"),
            "create endpointslices",
        ),
        (
            account("horizontal-pod-autoscaler"),
            "update horizontalpodautoscalers/status",
        ),
        (
            account("disruption-controller"),
            "update poddisruptionbudgets/status",
        ),
        (
            account("resourcequota-controller"),
            "update resourcequotas/status",
        ),
        (
            account("persistent-volume-binder"),
            "create persistentvolumes",
        ),
        (
            account("persistent-volume-binder"),
            "update persistentvolumeclaims/status",
        ),
        (
            account("ephemeral-volume-controller"),
            "create persistentvolumeclaims",
        ),
        (
            account("pvc-protection-controller"),
            "update persistentvolumeclaims",
        ),
        (account("generic-garbage-collector"), "delete pods"),
        (
            account("namespace-controller"),
            "update namespaces/finalize",
        ),
        (
            account("service-account-controller"),
            "create serviceaccounts",
        ),
        (account("root-ca-cert-publisher"), "create configmaps"),
        (account("node-controller"), "patch nodes"),
        (account("pod-garbage-collector"), "delete pods"),
        (
            "system:kube-controller-manager".to_owned(),
            "update secrets",
        ),
    ] {
        let done = deeds.get(&user).is_some_and(|done| done.contains(deed));
        assert!(done, "{user} did not {deed}: {deeds:#?}");
    }
}

/// A policy that exempts controllers by their user, as the commonest ones do.
#[tokio::test(start_paused = true)]
async fn policy_on_user_info_tells_controllers_from_people() {
    let cluster = world::start().await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
    let only = "request.userInfo.username == 'system:serviceaccount:kube-system:replicaset-controller' && \
                request.userInfo.groups.exists(g, g == 'system:serviceaccounts:kube-system')";
    let policy = json!({"metadata": {"name": "pods"}, "spec": {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": only, "message": "pods are made by ReplicaSets"}]}});
    create::<ValidatingAdmissionPolicy>(&Api::all(cluster.client()), policy).await;
    let binding = json!({"metadata": {"name": "pods"}, "spec": {"policyName": "pods", "validationActions": ["Deny"]}});
    create::<ValidatingAdmissionPolicyBinding>(&Api::all(cluster.client()), binding).await;
    // `validatingadmissionpolicystatus/controller.go: reconcile`.
    let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client());
    let seen = until(&policies, "pods", |it| {
        it["status"]["observedGeneration"] == 1
    })
    .await;
    assert_eq!(seen["status"]["typeChecking"], json!({}));
    sleep(Duration::from_secs(1)).await;
    let pod = json!({"metadata": {"name": "mine"}, "spec": template("mine", json!({}))["spec"]});
    let pod: Pod = serde_json::from_value(pod).expect("it is a pod");
    let refused = here::<Pod>(&cluster)
        .create(&Default::default(), &pod)
        .await;
    let text = refused.expect_err("people may not").to_string();
    assert!(text.contains("pods are made by ReplicaSets"), "{text}");
    create::<DaemonSet>(&here(&cluster), workload("DaemonSet", "agent", json!({}))).await;
    create::<Deployment>(
        &here(&cluster),
        workload("Deployment", "web", json!({"replicas": 2})),
    )
    .await;
    let ready = |set: &Value| set["status"]["readyReplicas"] == 2;
    until(&here::<Deployment>(&cluster), "web", ready).await;
    let agent = until(&here::<DaemonSet>(&cluster), "agent", |set| {
        set["status"].is_object()
    })
    .await;
    assert_eq!(agent["status"]["currentNumberScheduled"], 0, "{agent:#}");
    cluster.stop().await;
}
