//! How long a Deployment of 3 takes from its creation until it is ready, in real time.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kubewright_bench::stopwatch::{Samples, Stopwatch};
use kubewright_cluster::Cluster;

use crate::outcome::Ready;
use crate::workload::{create, until_ready};

pub(crate) async fn measure(times: usize) -> Result<Ready> {
    let stopwatch = Stopwatch::start();
    let cluster = Cluster::builder().nodes(3).start().await?;
    let start = stopwatch.elapsed();
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let mut samples = Samples::default();
    for n in 0..times {
        let name = format!("web-{n}");
        let stopwatch = Stopwatch::start();
        create(&api, &name, 3).await?;
        until_ready(&api, &name, 3).await?;
        samples.push(stopwatch.elapsed());
        // Nodes have room for 330 pods; what is gone is not to be measured with the next.
        api.delete(&name, &Default::default()).await?;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    cluster.stop().await;
    Ok(Ready {
        times,
        best: samples.least().as_secs_f64(),
        median: samples.median().as_secs_f64(),
        worst: samples.quantile(1.0).as_secs_f64(),
        start: start.as_secs_f64(),
    })
}
