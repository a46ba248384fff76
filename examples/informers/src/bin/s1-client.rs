//! S1: a plain client lists namespaces.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kubewright_example_informers::Session;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let namespaces: Api<Namespace> = Api::all(session.client.clone());
    for namespace in namespaces.list(&ListParams::default()).await? {
        println!("{}", namespace.metadata.name.unwrap_or_default());
    }
    Ok(())
}
