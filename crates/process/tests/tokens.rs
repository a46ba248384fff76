//! Tokens of service accounts are replaced in a running container before they expire.
#![cfg(target_os = "linux")]

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kubewright_cluster::{Clock, Cluster};
use kubewright_process::{Isolation, Namespaces};
use kubewright_runtime::environment;
use serde_json::json;
use world::{World, processes};

/// A clock that goes with the machine's, and is put forward by tests.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn forward(&self, minutes: i64) {
        self.0.fetch_add(minutes * 60, Ordering::AcqRel);
    }
}

impl environment::Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::Acquire))
    }
}

async fn set(world: &World, text: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(world.cluster.client());
    let map = json!({"metadata": {"name": "mark"}, "data": {"mark": text}, "apiVersion": "v1", "kind": "ConfigMap"});
    let how = PatchParams::apply("test").force();
    let applied = maps.patch("mark", &how, &Patch::Apply(map)).await;
    applied.expect("the ConfigMap is applied");
}

/// Whom the API server takes the bearer of a token for.
async fn user_of(world: &World, token: &str) -> Option<String> {
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: token.to_owned(),
            ..TokenReviewSpec::default()
        },
        ..TokenReview::default()
    };
    let reviews: Api<TokenReview> = Api::all(world.cluster.client());
    let reviewed = reviews.create(&PostParams::default(), &review).await;
    let status = reviewed.expect("the server answers").status?;
    let known = status.authenticated == Some(true);
    status.user.filter(|_| known)?.username
}

/// The tokens that the program has seen, in order.
fn tokens(log: &str) -> Vec<&str> {
    let lines = log.lines().filter_map(|line| line.strip_prefix("token "));
    lines.collect()
}

/// A token lives ten minutes and is replaced after eight. The mark in the same volume shows that the volume was read again.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_replaced_after_four_fifths_of_its_life() {
    let hand = Hand::default();
    let runtime = processes().namespaces(Namespaces::Auto).build();
    let runtime = runtime.expect("the runtime is made");
    let cluster = Cluster::builder().clock(Clock::of(hand.clone()));
    let world = World::over(cluster.runtime(runtime.clone())).await;
    set(&world, "first").await;
    let place = match runtime.isolation() {
        Isolation::None(_) => "$VOLUME_ALL",
        _ => "/all",
    };
    // The mark is read first: if the volume changes in between, the token is seen before the mark and never after it.
    let script = format!(
        "while true; do mark=$(cat {place}/mark) token=$(cat {place}/token); \
         [ \"$token\" = \"$seen\" ] || echo token $token; [ \"$mark\" = \"$last\" ] || echo mark $mark; \
         seen=$token last=$mark; sleep 0.05; done"
    );
    let sources = json!([
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
        {"configMap": {"name": "mark"}},
    ]);
    let more = json!({
        "container": {"volumeMounts": [{"name": "all", "mountPath": "/all"}]},
        "spec": {"volumes": [{"name": "all", "projected": {"sources": sources}}]},
    });
    world.script("bearer", &script, more).await;
    world.until_log("bearer", "mark first").await;

    hand.forward(7);
    set(&world, "second").await;
    let log = world.until_log("bearer", "mark second").await;
    assert_eq!(tokens(&log).len(), 1, "it is good for three more minutes");

    hand.forward(2);
    set(&world, "third").await;
    let log = world.until_log("bearer", "mark third").await;
    let [old, new] = tokens(&log)[..] else {
        panic!("the program has not seen two tokens: {log}");
    };
    let account = Some("system:serviceaccount:default:default".to_owned());
    assert_eq!(user_of(&world, old).await, account, "for one more minute");
    hand.forward(2);
    assert_eq!(user_of(&world, old).await, None, "it has expired");
    assert_eq!(user_of(&world, new).await, account);
    world.cluster.stop().await;
}
