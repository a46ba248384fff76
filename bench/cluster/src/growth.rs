//! What one more Deployment of 3 costs when there are many pods already, all in one namespace.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kubewright_bench::machine;
use kubewright_bench::stopwatch::{Samples, Stopwatch};
use kubewright_cluster::Cluster;

use crate::outcome::Growth;
use crate::workload::{all_ready, create, until_ready};

/// Nodes, the same whatever the number of pods; each has room for 110.
const NODES: usize = 500;
/// Pods of each Deployment that is there already.
const REPLICAS: usize = 100;
/// Deployments that are timed.
const MORE: usize = 50;

pub(crate) async fn measure(pods: usize) -> Result<Growth> {
    let cluster = Cluster::builder().nodes(NODES).start().await?;
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let crowd = pods.div_ceil(REPLICAS);
    for n in 0..crowd {
        create(&api, &format!("crowd-{n}"), REPLICAS).await?;
    }
    while all_ready(&api).await? < crowd * REPLICAS {
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    // What they left to be done is not to be measured.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut samples = Samples::default();
    let before = machine::processor_time();
    for n in 0..MORE {
        let name = format!("more-{n}");
        let stopwatch = Stopwatch::start();
        create(&api, &name, 3).await?;
        until_ready(&api, &name, 3).await?;
        samples.push(stopwatch.elapsed());
    }
    let processor = machine::processor_time().saturating_sub(before) / MORE as u32;
    let outcome = Growth {
        pods: crowd * REPLICAS,
        median: samples.median().as_secs_f64(),
        processor: processor.as_secs_f64(),
        memory: machine::own("VmRSS:"),
    };
    cluster.stop().await;
    Ok(outcome)
}
