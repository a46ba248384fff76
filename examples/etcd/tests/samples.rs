//! The samples are objects that the API server takes.

use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_etcd::EtcdCluster;

#[tokio::test]
async fn samples_are_accepted() {
    let world = World::builder()
        .manager(kubewright_example_etcd::setup)
        .start()
        .await;
    for text in [
        include_str!("../config/samples/etcdcluster.yaml"),
        include_str!("../config/samples/restored.yaml"),
    ] {
        let sample: EtcdCluster = serde_saphyr::from_str(text).expect("an EtcdCluster");
        let created = world.client.dry_run().create(&sample).await;
        created.map_err(Error::from).expect("it is accepted");
    }
}
