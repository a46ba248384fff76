//! S9: an informer feeds a rate-limited queue; two workers, slow as sloths, retry twice and then give up.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::reflector::Options;
use kubewright_cache::{Event, Key, ListWatch, Reader, Scope, SharedInformer};
use kubewright_example_informers::Session;
use kubewright_workqueue::Queue;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const RETRIES: u32 = 2;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let scope = Scope::all().namespace("default");
    let source = ListWatch::typed::<ConfigMap>(session.client.clone(), scope);
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source, Options::default());
    let queue = Queue::new(kubewright_workqueue::Options::new().name("config-maps"));
    let feed = queue.clone();
    informer.add_handler(move |event: Event<ConfigMap>| feed.add(event.object().key().clone()))?;

    let mut workers = JoinSet::new();
    for worker in 1..=2 {
        workers.spawn(work(worker, queue.clone(), informer.reader()));
    }
    let cancel = CancellationToken::new();
    let playing = async {
        informer.synced().await?;
        session.create("broken", "red").await?;
        session.play().await?;
        let _ = queue.shut_down_with_drain().await;
        cancel.cancel();
        anyhow::Ok(())
    };
    let (ran, played) = tokio::join!(informer.run(cancel.clone()), playing);
    workers.join_all().await;
    ran?;
    played
}

async fn work(worker: u32, queue: Queue<Key>, maps: Reader<ConfigMap>) {
    while let Some(item) = queue.get().await {
        match sync(item.key(), &maps).await {
            Ok(outcome) => {
                println!("worker {worker}: {} {outcome}", item.key());
                item.done();
            }
            Err(error) if item.requeues() < RETRIES => {
                println!("worker {worker}: {} again: {error}", item.key());
                item.retry();
            }
            Err(error) => {
                println!("worker {worker}: {} dropped: {error}", item.key());
                item.done();
            }
        }
    }
}

/// What there is to do for one ConfigMap. It takes its time.
async fn sync(key: &Key, maps: &Reader<ConfigMap>) -> Result<&'static str> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    match maps.get(key) {
        Some(_) if key.name() == "broken" => anyhow::bail!("it is broken"),
        Some(_) => Ok("is there"),
        None => Ok("is gone"),
    }
}
