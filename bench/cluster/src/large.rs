//! A cluster as large as Kubernetes promises to be: how long until everything is ready, and what it costs to do nothing.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use kubewright_bench::machine;
use kubewright_bench::stopwatch::Stopwatch;
use kubewright_cluster::Cluster;

use crate::outcome::Large;
use crate::workload::{all_ready, create};

/// Pods of each Deployment.
const REPLICAS: usize = 100;
/// What the last pods left to be done is not to be measured with idleness.
const REST: Duration = Duration::from_secs(10);
/// How long the idle cluster is measured: six renewals of every lease.
const IDLE: Duration = Duration::from_secs(60);

pub(crate) async fn measure(nodes: usize, pods: usize) -> Result<Large> {
    let stopwatch = Stopwatch::start();
    let cluster = Cluster::builder().nodes(nodes).start().await?;
    let all: Api<Node> = Api::all(cluster.client());
    while ready_nodes(&all).await? < nodes {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let nodes_ready = stopwatch.elapsed();
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let deployments = pods.div_ceil(REPLICAS);
    let stopwatch = Stopwatch::start();
    for n in 0..deployments {
        create(&api, &format!("large-{n}"), REPLICAS).await?;
    }
    while all_ready(&api).await? < deployments * REPLICAS {
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let pods_ready = stopwatch.elapsed();
    tokio::time::sleep(REST).await;
    let (before, revision) = (
        machine::processor_time_of_all_threads(),
        cluster.server().revision(),
    );
    tokio::time::sleep(IDLE).await;
    let busy = machine::processor_time_of_all_threads().saturating_sub(before);
    let outcome = Large {
        nodes,
        pods: deployments * REPLICAS,
        nodes_ready: nodes_ready.as_secs_f64(),
        pods_ready: pods_ready.as_secs_f64(),
        memory: machine::own("VmRSS:"),
        peak: machine::own("VmHWM:"),
        idle: busy.as_secs_f64() / IDLE.as_secs_f64(),
        idle_writes: cluster.server().revision() - revision,
    };
    cluster.stop().await;
    Ok(outcome)
}

async fn ready_nodes(all: &Api<Node>) -> Result<usize> {
    let nodes = all.list(&ListParams::default()).await?;
    let is_ready = |node: &&Node| {
        let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it.type_ == "Ready" && it.status == "True")
    };
    Ok(nodes.items.iter().filter(is_ready).count())
}
