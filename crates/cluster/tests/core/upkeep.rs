//! Jobs, tokens, quotas and budgets: what is kept in order while nobody looks.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota, Secret, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::scene::{all, create, delete, exists, here, patch, start, until};

async fn patch_status<K>(api: &Api<K>, name: &str, status: Value)
where
    K: serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    let patch = Patch::Merge(json!({ "status": status }));
    let params = PatchParams::default();
    api.patch_status(name, &params, &patch)
        .await
        .expect("patched");
}

fn pod(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "250m", "memory": "64Mi"}});
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    })
}

#[tokio::test(start_paused = true)]
async fn finished_job_goes_when_its_time_is_over() {
    let cluster = start().await;
    let jobs = here::<Job>(&cluster);
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    create(
        &jobs,
        json!({
            "metadata": {"name": "short"},
            "spec": {"ttlSecondsAfterFinished": 600, "suspend": true, "template": template},
        }),
    )
    .await;
    sleep(Duration::from_secs(3600)).await;
    assert!(exists(&jobs, "short").await, "it has not finished");
    let now = cluster.clock().now().to_string();
    let failed = |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": now});
    let conditions = json!([failed("FailureTarget"), failed("Failed")]);
    patch_status(
        &jobs,
        "short",
        json!({"conditions": conditions, "startTime": now}),
    )
    .await;
    sleep(Duration::from_secs(590)).await;
    assert!(exists(&jobs, "short").await);
    sleep(Duration::from_secs(20)).await;
    assert!(!exists(&jobs, "short").await);
}

#[tokio::test(start_paused = true)]
async fn account_and_authority_are_put_back() {
    let cluster = start().await;
    let (accounts, maps) = (
        here::<ServiceAccount>(&cluster),
        here::<ConfigMap>(&cluster),
    );
    delete(&accounts, "default", DeleteParams::default()).await;
    until("another account", || exists(&accounts, "default")).await;
    until("the authority", || exists(&maps, "kube-root-ca.crt")).await;
    patch(
        &maps,
        "kube-root-ca.crt",
        json!({"data": {"ca.crt": "forged", "more": "x"}}),
    )
    .await;
    let authority = cluster.server().certificate_authority().expect("made");
    until("the true authority", async || {
        let map = maps.get("kube-root-ca.crt").await.expect("there");
        let data = map.data.unwrap_or_default();
        data.len() == 1 && data["ca.crt"] == authority
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn secret_for_a_token_is_filled_and_goes_with_its_account() {
    let cluster = start().await;
    let (accounts, secrets) = (here::<ServiceAccount>(&cluster), here::<Secret>(&cluster));
    create(&accounts, json!({"metadata": {"name": "robot"}})).await;
    let annotations = json!({"kubernetes.io/service-account.name": "robot"});
    create(
        &secrets,
        json!({
            "metadata": {"name": "token", "annotations": annotations},
            "type": "kubernetes.io/service-account-token",
        }),
    )
    .await;
    until("the secret is filled", async || {
        let secret = secrets.get("token").await.expect("there");
        secret.data.is_some_and(|data| data.len() == 3)
    })
    .await;
    let data = secrets
        .get("token")
        .await
        .expect("there")
        .data
        .unwrap_or_default();
    let token = String::from_utf8(data["token"].0.clone()).expect("text");
    let reviews = all::<TokenReview>(&cluster);
    let review = create(&reviews, json!({"spec": {"token": token}})).await;
    let user = review
        .status
        .and_then(|status| status.user)
        .and_then(|user| user.username);
    assert_eq!(user.as_deref(), Some("system:serviceaccount:default:robot"));
    delete(&accounts, "robot", DeleteParams::default()).await;
    until("the token goes", async || !exists(&secrets, "token").await).await;
}

#[tokio::test(start_paused = true)]
async fn quota_counts_what_is_used_and_gives_it_back() {
    let cluster = start().await;
    let (quotas, pods) = (here::<ResourceQuota>(&cluster), here::<Pod>(&cluster));
    create(&pods, pod("a")).await;
    let hard = json!({"pods": "10", "requests.cpu": "4", "configmaps": "10", "count/deployments.apps": "3"});
    create(
        &quotas,
        json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}),
    )
    .await;
    let used = async || {
        let status = quotas
            .get("q")
            .await
            .expect("there")
            .status
            .unwrap_or_default();
        let used = status.used.unwrap_or_default();
        let text = |name: &str| used.get(name).map(|q| q.0.clone()).unwrap_or_default();
        [
            text("pods"),
            text("requests.cpu"),
            text("configmaps"),
            text("count/deployments.apps"),
        ]
    };
    until("it is counted", async || {
        used().await == ["1", "250m", "1", "0"]
    })
    .await;
    create(&pods, pod("b")).await;
    create(
        &here::<ConfigMap>(&cluster),
        json!({"metadata": {"name": "m"}}),
    )
    .await;
    until("more is counted", async || {
        used().await == ["2", "500m", "2", "0"]
    })
    .await;
    delete(&pods, "a", DeleteParams::default()).await;
    until("it is given back", async || {
        used().await == ["1", "250m", "2", "0"]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn budget_allows_what_is_healthy_beyond_it_and_no_more() {
    let cluster = start().await;
    let (budgets, pods) = (here::<PodDisruptionBudget>(&cluster), here::<Pod>(&cluster));
    let selector = json!({"matchLabels": {"app": "web"}});
    let budget =
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}});
    create(&budgets, budget).await;
    for name in ["a", "b"] {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = json!("somewhere");
        create(&pods, pod).await;
        let ready = json!([{"type": "Ready", "status": "True"}]);
        patch_status(
            &pods,
            name,
            json!({"phase": "Running", "conditions": ready}),
        )
        .await;
    }
    let allowed = async || {
        let status = budgets
            .get("b")
            .await
            .expect("there")
            .status
            .unwrap_or_default();
        (status.current_healthy, status.disruptions_allowed)
    };
    until("one may go", async || allowed().await == (Some(2), Some(1))).await;
    pods.evict("a", &EvictParams::default())
        .await
        .expect("allowed");
    let refused = pods.evict("b", &EvictParams::default()).await;
    let Err(kube::Error::Api(status)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(status.code, 429);
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(status.message, message);
    until("nobody may go", async || {
        allowed().await == (Some(1), Some(0))
    })
    .await;
}
