//! S3: a reflector fills a delta queue, which is emptied by hand into a store.

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::delta::{self, Delta};
use kubewright_cache::reflector::{Options, Reflector};
use kubewright_cache::{ListWatch, Scope, store};
use kubewright_example_informers::Session;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let scope = Scope::all().namespace("default");
    let source = Arc::new(ListWatch::typed::<ConfigMap>(session.client.clone(), scope));
    let (sender, mut deltas) = delta::queue(64);
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(Reflector::new(source, sender, Options::default()).run(cancel.clone()));

    let (mut writer, reader) = store::new::<ConfigMap>();
    let listed = Notify::new();
    let popping = async {
        while let Some(delta) = deltas.pop().await {
            match delta {
                Delta::Replace {
                    objects,
                    resource_version,
                } => {
                    for object in &objects {
                        println!("Replaced: {}", object.key().name());
                    }
                    writer.replace(objects, &resource_version);
                    listed.notify_one();
                }
                Delta::Apply(object) => {
                    let name = object.key().name().to_owned();
                    match writer.put(object) {
                        None => println!("Added: {name}"),
                        Some(_) => println!("Updated: {name}"),
                    }
                }
                Delta::Delete(object) => {
                    println!("Deleted: {}", object.key().name());
                    writer.remove(object.key());
                }
                _ => {}
            }
        }
    };
    tokio::select! {
        () = popping => {}
        played = async { listed.notified().await; session.play().await } => played?,
    }
    cancel.cancel();
    tasks.join_all().await;
    println!("{} in the store", reader.len());
    Ok(())
}
