//! Built-in plugins, through requests.

use serde_json::json;

use crate::server::{
    CONFIG_MAPS, PODS, config_map, create, patch, pod, refused, server, server_with_accounts,
    warned,
};

#[tokio::test]
async fn limits_are_defaults_and_bounds() {
    let server = server().await;
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}, "default": {"memory": "512Mi"}}]},
    });
    create(&server, "/api/v1/namespaces/default/limitranges", limits).await;
    let made = create(&server, PODS, pod("a", json!({}))).await;
    let resources = &made["spec"]["containers"][0]["resources"];
    assert_eq!(
        *resources,
        json!({"limits": {"memory": "512Mi"}, "requests": {"memory": "512Mi"}})
    );
    let large = pod("b", json!({"resources": {"limits": {"memory": "2Gi"}}}));
    assert_eq!(
        refused(&server, PODS, large).await,
        (
            403,
            "pods \"b\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn quotas_hold_without_a_controller() {
    let server = server().await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"configmaps": "2", "requests.cpu": "1"}},
    });
    create(&server, "/api/v1/namespaces/default/resourcequotas", quota).await;
    for name in ["a", "b"] {
        create(&server, CONFIG_MAPS, config_map(name, json!({}))).await;
    }
    let why = "configmaps \"c\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2";
    assert_eq!(
        refused(&server, CONFIG_MAPS, config_map("c", json!({}))).await,
        (403, why.to_owned())
    );
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    assert_eq!(
        refused(&server, &dry, config_map("c", json!({}))).await.0,
        403
    );
    let why = "pods \"p\" is forbidden: failed quota: q: must specify requests.cpu for: c";
    assert_eq!(
        refused(&server, PODS, pod("p", json!({}))).await,
        (403, why.to_owned())
    );
    // Updates take nothing more.
    patch(
        &server,
        &format!("{CONFIG_MAPS}/a"),
        json!({"data": {"x": "y"}}),
    )
    .await;
}

#[tokio::test]
async fn namespaces_demand_a_security_standard() {
    let server = server().await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}},
    });
    create(&server, "/api/v1/namespaces", namespace).await;
    let privileged = pod("p", json!({"securityContext": {"privileged": true}}));
    let details = "\"baseline:latest\": privileged (container \"c\" must not set securityContext.privileged=true)";
    assert_eq!(
        refused(
            &server,
            "/api/v1/namespaces/strict/pods",
            privileged.clone()
        )
        .await,
        (
            403,
            format!("pods \"p\" is forbidden: violates PodSecurity {details}")
        )
    );
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": privileged["spec"],
        }},
    });
    let (status, warnings) = warned(
        &server,
        "/apis/apps/v1/namespaces/strict/deployments",
        deployment,
    )
    .await;
    assert_eq!(status, 201);
    let expect = details.replace('"', "\\\"");
    assert_eq!(
        warnings,
        [format!("299 - \"would violate PodSecurity {expect}\"")]
    );
    let wrong = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "wrong", "labels": {"pod-security.kubernetes.io/enforce": "x"}},
    });
    assert_eq!(refused(&server, "/api/v1/namespaces", wrong).await.0, 422);
}

#[tokio::test]
async fn pods_get_priorities_and_claims_get_classes() {
    let server = server().await;
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9,
        "globalDefault": true,
    });
    create(&server, "/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
    let made = create(&server, PODS, pod("a", json!({}))).await;
    assert_eq!(made["spec"]["priority"], 9);
    assert_eq!(made["spec"]["priorityClassName"], "high");
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    });
    create(&server, "/apis/storage.k8s.io/v1/storageclasses", class).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let made = create(&server, claims, claim).await;
    assert_eq!(made["spec"]["storageClassName"], "fast");
}

#[tokio::test]
async fn pods_run_as_an_account_that_exists() {
    let server = server_with_accounts().await;
    assert_eq!(
        refused(&server, PODS, pod("a", json!({}))).await,
        (
            403,
            "pods \"a\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found".to_owned()
        )
    );
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    create(
        &server,
        "/api/v1/namespaces/default/serviceaccounts",
        account,
    )
    .await;
    let made = create(&server, PODS, pod("a", json!({}))).await;
    assert_eq!(made["spec"]["serviceAccountName"], "default");
    let volume = made["spec"]["volumes"][0]["name"]
        .as_str()
        .expect("a volume");
    assert!(volume.starts_with("kube-api-access-"), "{volume}");
    assert_eq!(
        made["spec"]["containers"][0]["volumeMounts"][0]["name"],
        volume
    );
}

#[tokio::test]
async fn nothing_is_created_where_there_is_no_namespace() {
    let server = server().await;
    let path = "/api/v1/namespaces/nowhere/configmaps";
    assert_eq!(
        refused(&server, path, config_map("a", json!({}))).await,
        (404, "namespaces \"nowhere\" not found".to_owned())
    );
}
