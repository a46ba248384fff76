//! Options of what a manager serves: probes and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::manager::ManagerError;
use kubewright_runtime::{Controller, Manager, Metrics};
use kubewright_testing::{Fault, Verb, Wire, limit, until};
use tokio::sync::mpsc;

use super::{config, get, here, run, server, telling};

#[limited::test(start_paused = true)]
async fn manager_is_ready_when_its_caches_are_and_alive_while_its_checks_hold() {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    wire.plan(|call| match call.verb {
        Verb::Watch | Verb::List => Fault::Silence,
        _ => Fault::None,
    });
    let (sender, _heard) = mpsc::channel(16);
    let controller = Controller::of::<ConfigMap>("slow")
        .scope(here())
        .reconciler(telling("slow", &sender));
    let manager = Manager::new(wire.client()).controller(controller);
    let probes = manager.probes().clone();
    let has_room = Arc::new(AtomicBool::new(true));
    let checked = has_room.clone();
    probes.liveness("disk", move || {
        let has_room = checked.load(Ordering::SeqCst);
        has_room
            .then_some(())
            .ok_or_else(|| "it is full".to_owned())
    });
    let status = |path: &str| probes.answer(path, "").status().as_u16();
    let running = run(manager);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((status("/readyz"), status("/healthz")), (500, 200));
    wire.heal();
    until("the manager is ready", async || {
        (status("/readyz") == 200).then_some(())
    })
    .await;
    has_room.store(false, Ordering::SeqCst);
    assert_eq!((status("/readyz"), status("/healthz")), (200, 500));
    running.end().await;
}

#[limited::test]
async fn metrics_are_served_at_an_address_and_nowhere_at_zero() {
    let (_server, kube) = server().await;
    let off = limit(Manager::new(kube.clone()).serve_metrics("0")).await;
    run(off.expect("nothing is served")).end().await;

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let serve = async || {
        let manager = Manager::new(kube.clone());
        limit(manager.serve_metrics(&address.to_string())).await
    };
    let refused = serve().await.expect_err("somebody else listens there");
    let about_metrics = matches!(
        &refused,
        ManagerError::Serve {
            what: "metrics",
            ..
        }
    );
    assert!(about_metrics, "{refused}");
    drop(taken);
    let running = run(serve().await.expect("the port is free"));
    let served = get(address, "/metrics", "none").await;
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    running.end().await;
}

#[limited::test(start_paused = true)]
async fn numbers_of_a_manager_are_kept_where_others_keep_theirs() {
    let (_server, kube) = server().await;
    let metrics = Metrics::new();
    let own = metrics.counter("own_total", "One's own.", &[]);
    own.expect("the name is free").with([]).increment();
    let (sender, mut heard) = mpsc::channel(16);
    let controller = Controller::of::<ConfigMap>("seen")
        .scope(here())
        .reconciler(telling("seen", &sender));
    let manager = Manager::new(kube)
        .with_metrics(metrics.clone())
        .controller(controller);
    let client = manager.client();
    let running = run(manager);
    limit(client.create(&config("a"))).await.expect("created");
    limit(heard.recv()).await.expect("it runs");
    running.end().await;
    let text = metrics.render();
    let reconciled = r#"controller_runtime_reconcile_total{controller="seen",result="success"} 1"#;
    for line in ["own_total 1", reconciled] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}
