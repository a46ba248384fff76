//! S4: reflector, queue and process function in one.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::delta::Delta;
use kubewright_cache::reflector::{Options, follow};
use kubewright_cache::{ListWatch, Scope};
use kubewright_example_informers::Session;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let scope = Scope::all().namespace("default");
    let source = ListWatch::typed::<ConfigMap>(session.client.clone(), scope);
    let listed = Notify::new();
    let process = |delta| match delta {
        Delta::Replace { objects, .. } => {
            println!("Replaced: {objects:?}");
            listed.notify_one();
        }
        Delta::Apply(object) => println!("Applied: {}", object.key().name()),
        Delta::Delete(object) => println!("Deleted: {}", object.key().name()),
        _ => {}
    };
    let cancel = CancellationToken::new();
    tokio::select! {
        () = follow(source, Options::default(), cancel.clone(), process) => Ok(()),
        played = async { listed.notified().await; session.play().await } => played,
    }
}
