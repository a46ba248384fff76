//! How long it takes to start a cluster, and to fork one with many objects.
//!
//! `cargo run --release -p kubewright-cluster --example fork`

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kubewright_cluster::Cluster;
use tokio::time::{Instant, sleep};

const OBJECTS: usize = 10_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let cluster = Cluster::builder().nodes(0).start().await?;
    println!("started and ready in {:?}", start.elapsed());
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for n in 0..OBJECTS {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("object-{n}"));
        maps.create(&Default::default(), &map).await?;
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        let fork = cluster.fork().await?;
        times.push(start.elapsed());
        drop(fork);
        // Controllers of the last fork come to their end, so that they are not measured with the next.
        sleep(Duration::from_millis(100)).await;
    }
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    println!("forked {OBJECTS} objects in {median:?} (median of 20), worst {worst:?}");
    Ok(())
}
