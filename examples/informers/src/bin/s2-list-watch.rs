//! S2: list ConfigMaps, then watch from the version of the list.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::delta::Delta;
use kubewright_cache::{ListWatch, Reporter, Scope, Shape, by_hand};
use kubewright_example_informers::Session;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let scope = Scope::all().namespace("default");
    let source = ListWatch::typed::<ConfigMap>(session.client.clone(), scope);

    let listed = by_hand::list(&source, Shape::default(), Reporter::default()).await?;
    for object in &listed.objects {
        println!("Exists: {}", object.key().name());
    }
    let from = &listed.resource_version;
    let mut watch = by_hand::watch(&source, from, Shape::default(), Reporter::default()).await?;
    let watching = async {
        while let Some(change) = watch.next().await {
            match change? {
                Delta::Apply(object) => println!("Applied: {}", object.key().name()),
                Delta::Delete(object) => println!("Deleted: {}", object.key().name()),
                _ => {}
            }
        }
        println!("The server ended the watch");
        Ok(())
    };
    tokio::select! {
        ended = watching => ended,
        played = session.play() => played,
    }
}
