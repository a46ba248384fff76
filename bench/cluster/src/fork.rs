//! How long a fork of a cluster with many objects takes.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kubewright_bench::stopwatch::{Samples, Stopwatch};
use kubewright_cluster::Cluster;

use crate::outcome::Fork;

/// Forks that are timed.
const FORKS: usize = 20;

pub(crate) async fn measure(objects: usize) -> Result<Fork> {
    let cluster = Cluster::builder().nodes(3).start().await?;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for n in 0..objects {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("object-{n}"));
        api.create(&Default::default(), &map).await?;
    }
    let mut samples = Samples::default();
    for _ in 0..FORKS {
        let stopwatch = Stopwatch::start();
        let fork = cluster.fork().await?;
        samples.push(stopwatch.elapsed());
        fork.stop().await;
        // The controllers of the last fork come to their end, so that they are not measured with the next.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    cluster.stop().await;
    Ok(Fork {
        objects,
        best: samples.least().as_secs_f64(),
        median: samples.median().as_secs_f64(),
        worst: samples.quantile(1.0).as_secs_f64(),
    })
}
