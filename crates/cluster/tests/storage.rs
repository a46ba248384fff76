//! Claims and volumes in a whole cluster: bound when they are needed, kept while they are used.

mod world;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, LogParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{all, change, create, has_event, here, start, until};

fn claim(name: &str, class: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}})
}

fn pod(name: &str, claim: &str) -> Value {
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
    json!({"metadata": {"name": name}, "spec": {"volumes": [volume],
        "containers": [{"name": "main", "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}})
}

fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_for_its_first_consumer_is_bound_where_the_pod_runs() {
    let cluster = start().await;
    let (pods, claims) = (
        here::<Pod>(&cluster),
        here::<PersistentVolumeClaim>(&cluster),
    );
    let classes: Api<StorageClass> = Api::all(cluster.client());
    create(
        &classes,
        json!({"metadata": {"name": "late"}, "provisioner": "sim.kubewright.dev/disk",
        "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer"}),
    )
    .await;
    create(&claims, claim("data", "late")).await;
    sleep(Duration::from_secs(60)).await;
    let waiting = until(&claims, "data", Value::is_object).await;
    assert_eq!(waiting["status"]["phase"], "Pending");
    let message = "waiting for first consumer to be created before binding";
    assert!(has_event(&cluster, "data", "WaitForFirstConsumer", message).await);
    create(&pods, pod("db", "data")).await;
    let running = until(&pods, "db", is_running).await;
    let bound = until(&claims, "data", |c| c["status"]["phase"] == "Bound").await;
    let node = &bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
    assert_eq!(*node, running["spec"]["nodeName"]);
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let volume = until(
        &volumes,
        bound["spec"]["volumeName"].as_str().expect("a volume"),
        Value::is_object,
    )
    .await;
    assert_eq!(volume["spec"]["claimRef"]["name"], "data");
    // Another pod finds it bound.
    create(&pods, pod("second", "data")).await;
    until(&pods, "second", is_running).await;
    for name in ["db", "second"] {
        pods.delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
    }
    claims
        .delete("data", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&claims, "data", Value::is_null).await;
    until(
        &volumes,
        volume["metadata"]["name"].as_str().expect("a name"),
        Value::is_null,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_stays_while_a_pod_uses_it_and_a_volume_while_it_is_bound() {
    let cluster = start().await;
    let (pods, claims) = (
        here::<Pod>(&cluster),
        here::<PersistentVolumeClaim>(&cluster),
    );
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    create(&claims, claim("data", "standard")).await;
    create(&pods, pod("db", "data")).await;
    until(&pods, "db", is_running).await;
    let bound = until(&claims, "data", |c| c["status"]["phase"] == "Bound").await;
    assert_eq!(
        bound["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"])
    );
    let volume = bound["spec"]["volumeName"]
        .as_str()
        .expect("a volume")
        .to_owned();
    let there = until(&volumes, &volume, Value::is_object).await;
    assert_eq!(
        there["metadata"]["finalizers"],
        json!(["kubernetes.io/pv-protection"])
    );
    claims
        .delete("data", &DeleteParams::default())
        .await
        .expect("deleted");
    volumes
        .delete(&volume, &DeleteParams::default())
        .await
        .expect("deleted");
    sleep(Duration::from_secs(600)).await;
    let kept = until(&claims, "data", Value::is_object).await;
    assert!(kept["metadata"]["deletionTimestamp"].is_string());
    assert!(
        until(&volumes, &volume, Value::is_object).await["metadata"]["deletionTimestamp"]
            .is_string()
    );
    assert!(is_running(&until(&pods, "db", Value::is_object).await));
    pods.delete("db", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&claims, "data", Value::is_null).await;
    until(&volumes, &volume, Value::is_null).await;
    // Nothing that is not used is kept.
    create(&claims, claim("idle", "standard")).await;
    until(&claims, "idle", |c| c["status"]["phase"] == "Bound").await;
    claims
        .delete("idle", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&claims, "idle", Value::is_null).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&volumes).await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn logs_of_a_fork_are_its_own() {
    let cluster = start().await;
    let spec = json!({"containers": [{"name": "main", "image": "web:1"}]});
    let annotations = json!({"sim.kubewright.dev/log": "hello"});
    let pods = here::<Pod>(&cluster);
    create(
        &pods,
        json!({"metadata": {"name": "web", "annotations": annotations}, "spec": spec}),
    )
    .await;
    until(&pods, "web", is_running).await;
    let fork = cluster.fork().await.expect("a fork");
    let theirs = here::<Pod>(&fork);
    let log = async |pods: &Api<Pod>| {
        pods.logs("web", &LogParams::default())
            .await
            .expect("a log")
    };
    let before = log(&pods).await;
    assert!(before.contains("hello"), "{before}");
    assert_eq!(log(&theirs).await, before);
    pods.delete("web", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&pods, "web", Value::is_null).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(log(&theirs).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_a_claim_in_use_goes_with_all_of_it() {
    let cluster = start().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    create(&namespaces, json!({"metadata": {"name": "shop"}})).await;
    cluster.ready().await.expect("it has its service account");
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "shop");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "shop");
    create(&claims, claim("data", "standard")).await;
    create(&pods, pod("db", "data")).await;
    until(&pods, "db", is_running).await;
    let deleted = namespaces.delete("shop", &DeleteParams::default()).await;
    deleted.expect("deleted");
    until(&namespaces, "shop", Value::is_null).await;
    sleep(Duration::from_secs(60)).await;
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    assert_eq!(all(&volumes).await.len(), 0);
}

fn volume(name: &str, spec: Value) -> Value {
    let mut volume = json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": "1Gi"}, "storageClassName": "",
        "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/x"}}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        volume["spec"][key] = value.clone();
    }
    volume
}

fn phase(expected: &'static str) -> impl Fn(&Value) -> bool {
    move |object| object["status"]["phase"] == expected
}

/// `persistentvolume/pv_controller.go: syncUnboundClaim`: a volume that is somebody's is not taken.
#[tokio::test(start_paused = true)]
async fn claim_that_names_the_volume_of_another_waits() {
    let cluster = start().await;
    let claims = here::<PersistentVolumeClaim>(&cluster);
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    create(&volumes, volume("v", json!({}))).await;
    let named = |name: &str| {
        let mut claim = claim(name, "");
        claim["spec"]["volumeName"] = json!("v");
        claim
    };
    create(&claims, named("a")).await;
    until(&claims, "a", phase("Bound")).await;
    create(&claims, named("b")).await;
    let message = "volume \"v\" already bound to a different claim.";
    assert!(has_event(&cluster, "b", "FailedBinding", message).await);
    sleep(Duration::from_secs(60)).await;
    assert!(phase("Pending")(
        &until(&claims, "b", Value::is_object).await
    ));
    let bound = until(&volumes, "v", phase("Bound")).await;
    assert_eq!(bound["spec"]["claimRef"]["name"], "a");
    let mut large = named("c");
    large["spec"]["volumeName"] = json!("w");
    large["spec"]["resources"]["requests"]["storage"] = json!("9Gi");
    create(&volumes, volume("w", json!({}))).await;
    create(&claims, large).await;
    let message = "Cannot bind to requested volume \"w\": requested PV is too small";
    assert!(has_event(&cluster, "c", "VolumeMismatch", message).await);
}

/// `pv_controller.go: syncVolume` and `syncBoundClaim`.
#[tokio::test(start_paused = true)]
async fn retained_volume_is_free_once_its_claim_is_forgotten_and_a_claim_without_its_volume_is_lost()
 {
    let cluster = start().await;
    let claims = here::<PersistentVolumeClaim>(&cluster);
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    create(&volumes, volume("v", json!({}))).await;
    create(&claims, claim("a", "")).await;
    until(&claims, "a", phase("Bound")).await;
    claims
        .delete("a", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&volumes, "v", phase("Released")).await;
    create(&claims, claim("b", "")).await;
    sleep(Duration::from_secs(60)).await;
    assert!(
        phase("Pending")(&until(&claims, "b", Value::is_object).await),
        "what is released is not taken"
    );
    change(&volumes, "v", json!({"spec": {"claimRef": null}})).await;
    until(&claims, "b", phase("Bound")).await;
    // Somebody takes the volume away under the claim.
    change(&volumes, "v", json!({"metadata": {"finalizers": null}})).await;
    volumes
        .delete("v", &DeleteParams::default())
        .await
        .expect("deleted");
    change(&volumes, "v", json!({"metadata": {"finalizers": null}})).await;
    until(&volumes, "v", Value::is_null).await;
    until(&claims, "b", phase("Lost")).await;
    let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    assert!(has_event(&cluster, "b", "ClaimLost", message).await);
}

/// `pv_controller.go: provisionClaimOperationExternal`, as an external provisioner sees it.
#[tokio::test(start_paused = true)]
async fn provisioner_of_somebody_else_is_asked_and_its_volume_is_bound() {
    let cluster = start().await;
    let claims = here::<PersistentVolumeClaim>(&cluster);
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let classes: Api<StorageClass> = Api::all(cluster.client());
    create(&classes, json!({"metadata": {"name": "theirs"}, "provisioner": "csi.example.com", "reclaimPolicy": "Delete"})).await;
    create(&claims, claim("data", "theirs")).await;
    let asked = until(&claims, "data", |claim| {
        let annotations = &claim["metadata"]["annotations"];
        annotations["volume.kubernetes.io/storage-provisioner"] == "csi.example.com"
    })
    .await;
    assert!(phase("Pending")(&asked));
    let meta = &asked["metadata"];
    let claim_ref = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": meta["uid"]});
    let mut made = volume(
        "theirs-1",
        json!({"storageClassName": "theirs", "claimRef": claim_ref,
        "persistentVolumeReclaimPolicy": "Delete"}),
    );
    made["metadata"]["annotations"] = json!({"pv.kubernetes.io/provisioned-by": "csi.example.com"});
    create(&volumes, made).await;
    until(&claims, "data", phase("Bound")).await;
    claims
        .delete("data", &DeleteParams::default())
        .await
        .expect("deleted");
    until(&volumes, "theirs-1", phase("Released")).await;
    sleep(Duration::from_secs(60)).await;
    until(&volumes, "theirs-1", phase("Released")).await;
}

/// `volumebinding/binder.go: FindPodVolumes`: a claim that waits gets a volume that can be used where the pod runs.
#[tokio::test(start_paused = true)]
async fn claim_that_waits_gets_a_local_volume_and_its_pod_goes_there() {
    let cluster = start().await;
    let (pods, claims) = (
        here::<Pod>(&cluster),
        here::<PersistentVolumeClaim>(&cluster),
    );
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let classes: Api<StorageClass> = Api::all(cluster.client());
    create(
        &classes,
        json!({"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"}),
    )
    .await;
    create(&claims, claim("data", "local")).await;
    create(&pods, pod("db", "data")).await;
    sleep(Duration::from_secs(30)).await;
    let waiting = until(&pods, "db", Value::is_object).await;
    let text = world::condition(&waiting, "PodScheduled")["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        text.contains("2 node(s) didn't find available persistent volumes to bind"),
        "{text}"
    );
    let terms = json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}]}]);
    create(
        &volumes,
        volume(
            "disk",
            json!({"storageClassName": "local",
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}),
        ),
    )
    .await;
    let running = until(&pods, "db", is_running).await;
    assert_eq!(running["spec"]["nodeName"], "node-2");
    let bound = until(&claims, "data", phase("Bound")).await;
    assert_eq!(bound["spec"]["volumeName"], "disk");
}

/// `volume/expand/expand_controller.go: syncHandler, expand`, and what the resizer beside a driver does then.
#[tokio::test(start_paused = true)]
async fn claim_that_asks_for_more_gets_it() {
    let cluster = start().await;
    let claims = here::<PersistentVolumeClaim>(&cluster);
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    create(&claims, claim("data", "standard")).await;
    let bound = until(&claims, "data", phase("Bound")).await;
    assert_eq!(bound["status"]["capacity"]["storage"], "1Gi");
    change(
        &claims,
        "data",
        json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}),
    )
    .await;
    until(&claims, "data", |claim| {
        claim["status"]["capacity"]["storage"] == "3Gi"
    })
    .await;
    let volume = bound["spec"]["volumeName"].as_str().expect("a volume");
    until(&volumes, volume, |volume| {
        volume["spec"]["capacity"]["storage"] == "3Gi"
    })
    .await;
    assert!(
        has_event(
            &cluster,
            "data",
            "VolumeResizeSuccessful",
            "Resize volume succeeded"
        )
        .await
    );
}
