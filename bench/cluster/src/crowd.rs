//! Many Deployments of 3 created one after the other, until the last pod of all is ready.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kubewright_bench::machine;
use kubewright_bench::stopwatch::Stopwatch;
use kubewright_cluster::Cluster;

use crate::outcome::Crowd;
use crate::workload::{all_ready, create};

pub(crate) async fn measure(deployments: usize, nodes: usize) -> Result<Crowd> {
    let cluster = Cluster::builder().nodes(nodes).start().await?;
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let before = cluster.server().revision();
    let stopwatch = Stopwatch::start();
    for n in 0..deployments {
        create(&api, &format!("web-{n}"), 3).await?;
    }
    while all_ready(&api).await? < deployments * 3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let settled = stopwatch.elapsed();
    let outcome = Crowd {
        deployments,
        nodes,
        settled: settled.as_secs_f64(),
        memory: machine::own("VmRSS:"),
        peak: machine::own("VmHWM:"),
        writes: cluster.server().revision() - before,
    };
    cluster.stop().await;
    Ok(outcome)
}
