//! A rolling update of the endpoints of a Service under load: no request fails.
//!
//! Each claim fails without the code that keeps it: new endpoints that do not listen yet need the second attempt, requests
//! under way need connections that survive the change of their endpoint.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use support::{Backend, DRAINING, Line, READY, World, ask, until};

const PODS: usize = 5;
const CLIENTS: usize = 12;

/// Requests as fast as they are answered, one connection each, until they are stopped.
struct Load {
    stop: CancellationToken,
    answered: Arc<AtomicUsize>,
    tasks: JoinSet<Vec<String>>,
}

impl Load {
    fn start(address: SocketAddr) -> Self {
        let (stop, answered) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for client in 0..CLIENTS {
            let (stop, answered) = (stop.clone(), answered.clone());
            tasks.spawn(async move {
                let mut failures = Vec::new();
                while !stop.is_cancelled() {
                    match ask(address, &format!("wait 2 {client}")).await {
                        Ok(_) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                        Err(failure) => failures.push(failure),
                    }
                }
                failures
            });
        }
        Self {
            stop,
            answered,
            tasks,
        }
    }

    async fn end(self) -> (usize, Vec<String>) {
        self.stop.cancel();
        let failures = self.tasks.join_all().await.concat();
        (self.answered.load(Ordering::Relaxed), failures)
    }
}

/// Waits until an endpoint gets no new connections.
async fn quiet(backend: &Backend) {
    let mut before = usize::MAX;
    until("an endpoint that nobody asks", async || {
        sleep(Duration::from_millis(60)).await;
        let (last, now) = (before, backend.count());
        before = now;
        (last == now).then_some(()).ok_or(format!("{now} requests"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rolling_update_under_load_fails_no_request() {
    let world = World::start().await;
    let address = world.service("web", json!({})).await;
    let mut old = Vec::new();
    for number in 0..PODS {
        old.push(Backend::start(world.pod(2 + number as u32), &format!("old-{number}")).await);
    }
    let mut endpoints: Vec<_> = old.iter().map(|backend| (backend.address, READY)).collect();
    world.endpoints("web", &endpoints).await;
    until("the Service", async || ask(address, "x").await).await;
    let load = Load::start(address);
    let mut new = Vec::new();
    for (number, backend) in old.into_iter().enumerate() {
        let ip = world.pod(100 + number as u32);
        // Ready too early: nothing listens there yet, and connections are refused.
        endpoints.push((SocketAddr::from((ip, 9000)), READY));
        world.endpoints("web", &endpoints).await;
        sleep(Duration::from_millis(40)).await;
        new.push(Backend::start(ip, &format!("new-{number}")).await);
        until("a request at the new pod", async || {
            let count = new[number].count();
            (count > 0).then_some(()).ok_or(count.to_string())
        })
        .await;
        // A long request is under way when its pod is asked to end.
        let mut slow = Line::connect(address).await.expect("connected");
        let slow = tokio::spawn(async move { slow.ask("wait 150 slow").await });
        sleep(Duration::from_millis(10)).await;
        let at = endpoints
            .iter()
            .position(|(it, _)| *it == backend.address)
            .expect("listed");
        endpoints[at].1 = DRAINING;
        world.endpoints("web", &endpoints).await;
        quiet(&backend).await;
        backend.stop().await;
        endpoints.remove(at);
        world.endpoints("web", &endpoints).await;
        slow.await
            .expect("no panic")
            .expect("a connection in flight is not cut");
    }
    let (answered, failures) = load.end().await;
    println!("{answered} requests answered, {} failed", failures.len());
    assert_eq!(failures, [""; 0], "of {answered} requests");
    assert!(answered > 100, "{answered} requests are no load");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_moves_on_while_its_endpoint_has_seen_nothing_of_it() {
    let world = World::start().await;
    let address = world.service("web", json!({})).await;
    // The kernel takes connections for it, and nobody ever does.
    let stuck = TcpListener::bind((world.pod(2), 9000))
        .await
        .expect("bound");
    let own = stuck.local_addr().expect("an address");
    world.endpoints("web", &[(own, READY)]).await;
    let connected = async || {
        Line::connect(address)
            .await
            .map_err(|error| error.to_string())
    };
    let mut alone = until("the Service", connected).await;
    // It has begun, with the only endpoint there is, when that endpoint has a connection.
    let begun = timeout(Duration::from_secs(10), stuck.accept()).await;
    let begun = begun
        .expect("the proxy connects in time")
        .expect("accepted");
    let b = Backend::start(world.pod(3), "b").await;
    world
        .endpoints("web", &[(own, READY), (b.address, READY)])
        .await;
    // Whom a connection may go to is decided when it begins: this one does once both are known.
    until("a second endpoint", async || {
        let mut next = connected().await?;
        let answer = timeout(Duration::from_millis(100), next.ask("x")).await;
        answer
            .map_err(|_| "no answer".to_owned())?
            .map_err(|error| error.to_string())
    })
    .await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(Line::connect(address).await.expect("connected"));
    }
    sleep(Duration::from_millis(50)).await;
    drop((stuck, begun));
    for line in &mut waiting {
        assert_eq!(line.ask("x").await.expect("another endpoint answers"), "b");
    }
    // It knew of one endpoint, which is gone.
    assert!(alone.ask("x").await.is_err());
}
