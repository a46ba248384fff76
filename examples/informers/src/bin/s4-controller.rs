//! S4: reflector, queue and process function in one.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::reflector::{Options, follow};
use kubewright_cache::{ListWatch, Scope};
use kubewright_example_informers::{PrintingStore, Session, sync};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let scope = Scope::all().namespace("default");
    let source = ListWatch::typed::<ConfigMap>(session.client.clone(), scope);
    let mut store = PrintingStore::default();
    let (reader, listed) = (store.reader(), store.listed());
    let cancel = CancellationToken::new();
    tokio::select! {
        () = follow(source, Options::default(), cancel, |delta| store.process(delta)) => {}
        () = sync(reader.clone()) => {}
        played = async { listed.notified().await; session.play().await } => played?,
    }
    println!("{} in the store", reader.len());
    Ok(())
}
