//! Options of watches: what they lead to, when again, and in which order.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::ApiResource;
use kubewright_runtime::watch::{EventQueue, OwnedBy, OwnerScope};
use kubewright_runtime::{
    Add, Client, Context, Controller, Event, Key, Manager, Outcome, Priority, PriorityPolicy,
    Watch, from_fn, set_controller_reference, set_owner_reference,
};
use kubewright_testing::{Wire, limit, within};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{config, here, run, server, telling};

#[limited::test(start_paused = true)]
async fn objects_are_reconciled_again_after_the_resync_period() {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    let client = Client::new(wire.client());
    limit(client.create(&config("a"))).await.expect("created");
    let (sender, mut heard) = mpsc::channel(16);
    let reconciler = from_fn(move |_: Arc<ConfigMap>, _: Context| {
        // The test may be over.
        let _ = sender.try_send(Instant::now());
        async { Ok(Outcome::done()) }
    });
    let controller = Controller::of::<ConfigMap>("again")
        .scope(here())
        .resync(Duration::from_secs(60))
        .reconciler(reconciler);
    let running = run(Manager::new(wire.client()).controller(controller));
    let mut last = limit(heard.recv()).await.expect("it runs");
    let asked = wire.calls().len();
    for _ in 0..3 {
        let next = limit(heard.recv()).await.expect("it runs again");
        assert_eq!((next - last).as_secs(), 60);
        last = next;
    }
    assert_eq!(wire.calls().len(), asked, "nobody asks the server");
    running.end().await;
}

#[limited::test(start_paused = true)]
async fn watch_without_a_type_leads_to_the_owner_of_its_kind() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    let owner = limit(client.create(&config("owner"))).await;
    let owner = owner.expect("created");
    let (sender, mut heard) = mpsc::channel(16);
    let owners = ApiResource::erase::<ConfigMap>(&());
    let owned = Watch::dynamic(&ApiResource::erase::<Secret>(&()))
        .scope(here())
        .owned_by(&owners, OwnedBy::Controller, OwnerScope::Namespaced);
    let controller = Controller::of::<ConfigMap>("owner")
        .scope(here())
        .watches(owned)
        .reconciler(telling("reconciled", &sender));
    let running = run(Manager::new(kube).controller(controller));
    limit(heard.recv()).await.expect("the owner itself");
    let secret = |name: &str| {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.namespace = Some("default".to_owned());
        secret
    };
    let mut kept = secret("kept");
    set_owner_reference(&owner, &mut kept, Default::default()).expect("it fits");
    limit(client.create(&kept)).await.expect("created");
    let wait = Duration::from_secs(10);
    let early = within(wait, async || heard.try_recv().ok()).await;
    assert_eq!(early, None, "an owner is not yet a controller");
    let mut managed = secret("managed");
    set_controller_reference(&owner, &mut managed).expect("it fits");
    limit(client.create(&managed)).await.expect("created");
    assert_eq!(limit(heard.recv()).await, Some("reconciled"));
    running.end().await;
}

#[limited::test(start_paused = true)]
async fn priorities_decide_the_order_as_their_policy_says() {
    for (policy, order) in [
        (PriorityPolicy::Strict, ["urgent", "patient"]),
        (PriorityPolicy::Ignore, ["patient", "urgent"]),
    ] {
        let (_server, kube) = server().await;
        let (sender, mut heard) = mpsc::channel(16);
        let controller = Controller::for_requests("order")
            .priorities(policy)
            .reconciler(move |key: Key, _: Context| {
                // The test may be over.
                let _ = sender.try_send(key.name().to_owned());
                async { Ok(Outcome::done()) }
            });
        let handle = controller.handle();
        let requests = handle.requests();
        let patient = Add::now().priority(Priority::LOW);
        requests.add_with(Key::cluster("patient"), patient);
        requests.add(Key::cluster("urgent"));
        let running = run(Manager::new(kube).controller(controller));
        for name in order {
            let next = limit(heard.recv()).await;
            assert_eq!(next.as_deref(), Some(name), "{policy:?}");
        }
        running.end().await;
    }
}

#[limited::test(start_paused = true)]
async fn live_changes_come_before_the_initial_list() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    for name in ["a", "b"] {
        limit(client.create(&config(name))).await.expect("created");
    }
    let (sender, mut heard) = mpsc::channel(16);
    let slow = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        // The test may be over.
        let _ = sender.try_send(cx.key().name().to_owned());
        async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("slow")
        .scope(here())
        .priorities(PriorityPolicy::FAIR)
        .reconciler(slow);
    let running = run(Manager::new(kube).controller(controller));
    assert_eq!(limit(heard.recv()).await.as_deref(), Some("a"));
    limit(client.create(&config("live")))
        .await
        .expect("created");
    for name in ["live", "b"] {
        assert_eq!(limit(heard.recv()).await.as_deref(), Some(name));
    }
    running.end().await;
}

#[limited::test(start_paused = true)]
async fn handler_says_how_urgent_a_request_is() {
    let (_server, kube) = server().await;
    let client = Client::new(kube.clone());
    for name in ["b-patient", "a-urgent"] {
        limit(client.create(&config(name))).await.expect("created");
    }
    let watch = Watch::of::<ConfigMap>().scope(here()).handler(
        |event: &Event<ConfigMap>, queue: &EventQueue<'_>| {
            let key = event.object().key().clone();
            let urgent = key.name() == "a-urgent";
            let priority = Priority(if urgent { 7 } else { -7 });
            // Both are due at once, and the patient one waits for longer.
            let delay = Duration::from_secs(if urgent { 10 } else { 5 });
            queue.add_with(key, Add::after(delay).priority(priority));
        },
    );
    let (sender, mut heard) = mpsc::channel(16);
    let controller = Controller::for_requests("handled")
        .watches(watch)
        .reconciler(move |key: Key, _: Context| {
            // The test may be over.
            let _ = sender.try_send(key.name().to_owned());
            let busy = key.name() == "busy";
            async move {
                let work = Duration::from_secs(if busy { 60 } else { 0 });
                tokio::time::sleep(work).await;
                Ok(Outcome::done())
            }
        });
    controller.handle().requests().add(Key::cluster("busy"));
    let running = run(Manager::new(kube).controller(controller));
    for name in ["busy", "a-urgent", "b-patient"] {
        assert_eq!(limit(heard.recv()).await.as_deref(), Some(name));
    }
    running.end().await;
}
