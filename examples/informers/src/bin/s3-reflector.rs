//! S3: a reflector fills a delta queue, which is emptied by hand into a store.

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::reflector::{Options, Reflector};
use kubewright_cache::{ListWatch, Scope, delta};
use kubewright_example_informers::{PrintingStore, Session, sync};
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

    let mut store = PrintingStore::default();
    let (reader, listed) = (store.reader(), store.listed());
    let popping = async {
        while let Some(delta) = deltas.pop().await {
            store.process(delta);
        }
    };
    tokio::select! {
        () = popping => {}
        () = sync(reader.clone()) => {}
        played = async { listed.notified().await; session.play().await } => played?,
    }
    cancel.cancel();
    tasks.join_all().await;
    println!("{} in the store", reader.len());
    Ok(())
}
