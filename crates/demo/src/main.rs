//! Runs the operator: on the cluster of `KUBECONFIG` or of its pod, else on one of its own with the sample in it.

use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_cluster::Cluster;
use kubewright_demo::{CloudManager, controller, sample};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let in_a_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    if in_a_pod || std::env::var_os("KUBECONFIG").is_some() {
        Manager::from_env()
            .await?
            .name("CloudManager")
            .controller(controller())
            .run()
            .await?;
        return Ok(());
    }
    let cluster = Cluster::builder().nodes(3).start().await?;
    let client = Client::new(cluster.client());
    client.create(&CloudManager::crd()).await?;
    client.create(&sample()?).await?;
    let manager = Manager::new(cluster.client())
        .name("CloudManager")
        .controller(controller());
    let address = "127.0.0.1:0".parse()?;
    let endpoint = cluster.listen(address).await?;
    let path = std::env::temp_dir().join("cloud-manager.kubeconfig");
    endpoint.write_kubeconfig(&path)?;
    println!(
        "kubectl --kubeconfig {} get cloudmanagers,pods",
        path.display()
    );
    manager.run().await?;
    Ok(())
}
