//! S5: an informer keeps the store and calls three functions.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kubewright_cache::reflector::Options;
use kubewright_cache::{Callbacks, ListWatch, Scope, SharedInformer};
use kubewright_example_informers::Session;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let scope = Scope::all().namespace("default");
    let source = ListWatch::typed::<ConfigMap>(session.client.clone(), scope);
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source, Options::default());
    informer.add_handler(
        Callbacks::default()
            .added(|map: std::sync::Arc<ConfigMap>| println!("created: {}", map.name_any()))
            .updated(|old, new| {
                println!(
                    "updated: {} {:?} -> {:?}",
                    new.name_any(),
                    old.labels(),
                    new.labels()
                )
            })
            .deleted(|map| println!("deleted: {}", map.name_any())),
    )?;
    let cancel = CancellationToken::new();
    let playing = async {
        informer.synced().await?;
        session.play().await?;
        println!("{} in the store", informer.reader().len());
        cancel.cancel();
        Ok(())
    };
    let (ran, played) = tokio::join!(informer.run(cancel.clone()), playing);
    ran?;
    played
}
