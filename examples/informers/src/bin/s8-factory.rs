//! S8: informers for several kinds from one factory: typed, dynamic, metadata only; and listers.

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::core::ApiResource;
use kubewright_cache::{Event, Factory, Scope, Selector};
use kubewright_example_informers::Session;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let factory = Factory::new(session.client.clone());

    let maps = factory.lister::<ConfigMap>();
    let again = factory.informer::<ConfigMap>();
    let namespaces = factory.dynamic(&ApiResource::erase::<Namespace>(&()), Scope::all());
    let accounts = factory.metadata(
        &ApiResource::erase::<ServiceAccount>(&()),
        Scope::all().namespace("default"),
    );
    println!("{} informers", factory.len());
    factory.start();
    factory.synced().await?;

    println!(
        "same store: {}",
        again.reader().len() == maps.list(&Selector::default()).len()
    );
    println!("namespaces: {:?}", namespaces.reader().keys());
    println!("service accounts: {}", accounts.reader().len());
    let blue: Selector = [("team", "blue")].into_iter().collect();
    println!("blue: {}", maps.namespaced("default").list(&blue).len());
    if let Err(error) = maps.namespaced("default").get("nothing") {
        println!("{error}");
    }
    let here = maps.namespaced("default");
    let chosen = blue.clone();
    again.add_handler(move |event: Event<ConfigMap>| {
        let name = event.object().key().name();
        println!("{name} changed: {} blue", here.list(&chosen).len());
    })?;
    session.play().await?;
    println!("blue: {}", maps.namespaced("default").list(&blue).len());
    factory.shutdown().await;
    Ok(())
}
