//! Reconciles a second with one to four replicas that share the objects, and what each keeps in memory.
//!
//! Server and replicas are in one process. A reconcile waits for 5 ms, as one does that talks to something; each replica has
//! four workers. `cargo bench -p kubewright-runtime --bench sharding`

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::controller::Handle;
use kubewright_runtime::sharding::Caches;
use kubewright_runtime::{
    Client, Context, Controller, Key, Manager, Outcome, Query, Scope, ShardingOptions, from_fn,
};
use kubewright_server::Server;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const OBJECTS: usize = 2_000;
const WORK: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(120);

type Done = Arc<Mutex<BTreeSet<Key>>>;

struct Replica {
    client: Client,
    handle: Handle,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    println!("| replicas | reconciles a second | most objects in one cache | share |");
    println!("|---:|---:|---:|---:|");
    for count in 1..=4 {
        measure(count).await;
    }
}

async fn measure(count: usize) {
    let server = Server::builder().start().await.expect("a server starts");
    let user = Client::new(kube::Client::new(server.service(), "default"));
    let keys: Vec<Key> = (0..OBJECTS)
        .map(|number| Key::new("default", &format!("object-{number}")))
        .collect();
    for key in &keys {
        let created = user.create_or_update::<ConfigMap>(key, |_| {}).await;
        created.expect("it is created");
    }
    let (done, stop) = (Done::default(), CancellationToken::new());
    let replicas: Vec<Replica> = (0..count)
        .map(|number| replica(&server, number, &done, &stop))
        .collect();
    let held = settled(&replicas).await;
    until_done(&done).await;
    sleep(Duration::from_secs(3)).await;
    done.lock().clear();
    let start = Instant::now();
    for key in &keys {
        let ask = |replica: &Replica| replica.handle.reconcile(key.clone());
        replicas.iter().for_each(ask);
    }
    until_done(&done).await;
    let rate = OBJECTS as f64 / start.elapsed().as_secs_f64();
    println!(
        "| {count} | {rate:.0} | {held} | {:.0} |",
        OBJECTS as f64 / count as f64
    );
    stop.cancel();
}

fn replica(server: &Server, number: usize, done: &Done, stop: &CancellationToken) -> Replica {
    let done = done.clone();
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        let done = done.clone();
        async move {
            sleep(WORK).await;
            done.lock().insert(cx.key().clone());
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("shared")
        .scope(Scope::all().namespace("default"))
        .workers(4)
        .reconciler(reconciler);
    let options = ShardingOptions::new("default", "operator", &format!("replica-{number}"))
        .retry_period(Duration::from_millis(500))
        .caches(Caches::OwnShards);
    let handle = controller.handle();
    let manager = Manager::new(kube::Client::new(server.service(), "default"))
        .sharded(options)
        .controller(controller);
    let client = manager.client();
    tokio::spawn(manager.run_until(stop.clone()));
    Replica { client, handle }
}

/// Waits until every object is in exactly one cache, and returns the size of the largest.
async fn settled(replicas: &[Replica]) -> usize {
    let deadline = Instant::now() + LIMIT;
    loop {
        let mut counts = Vec::new();
        for replica in replicas {
            // A cache that is asked for before the manager runs knows nothing of shards.
            if !replica.handle.is_warm() {
                counts.push(0);
                continue;
            }
            let query = Query::all().namespace("default");
            let listed = replica.client.list::<ConfigMap>(query).await;
            counts.push(listed.map_or(0, |list| list.len()));
        }
        if counts.iter().sum::<usize>() == OBJECTS && counts.iter().all(|count| *count > 0) {
            return counts.into_iter().max().unwrap_or(0);
        }
        assert!(Instant::now() < deadline, "not settled: {counts:?}");
        sleep(Duration::from_millis(200)).await;
    }
}

async fn until_done(done: &Done) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let count = done.lock().len();
        if count == OBJECTS {
            return;
        }
        assert!(Instant::now() < deadline, "{count} of {OBJECTS} objects");
        sleep(Duration::from_millis(1)).await;
    }
}
