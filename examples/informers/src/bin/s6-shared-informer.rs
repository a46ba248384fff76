//! S6: two handlers on one watch, each with its own resync; one comes late, one leaves early.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::reflector::Options;
use kubewright_cache::{Event, HandlerOptions, ListWatch, Scope, SharedInformer};
use kubewright_example_informers::Session;
use tokio_util::sync::CancellationToken;

fn handler(name: &'static str) -> impl FnMut(Event<ConfigMap>) + Send {
    move |event| {
        let object = event.object().key().name();
        match &event {
            Event::Added { initial: true, .. } => println!("{name}: found {object}"),
            Event::Added { .. } => println!("{name}: created {object}"),
            Event::Updated { .. } if event.is_resync() => println!("{name}: resync {object}"),
            Event::Updated { .. } => println!("{name}: updated {object}"),
            _ => println!("{name}: deleted {object}"),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let scope = Scope::all().namespace("default");
    let source = ListWatch::typed::<ConfigMap>(session.client.clone(), scope);
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source, Options::default());
    let every = |seconds| HandlerOptions::default().resync(Duration::from_secs(seconds));
    let early = informer.add_handler_with(handler("early"), every(1))?;

    let cancel = CancellationToken::new();
    let playing = async {
        early.synced().await?;
        let late = informer.add_handler_with(handler("late"), every(60))?;
        late.synced().await?;
        session.play().await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        early.remove();
        early.ended().await;
        session.create("after", "red").await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
        anyhow::Ok(())
    };
    let (ran, played) = tokio::join!(informer.run(cancel.clone()), playing);
    ran?;
    played
}
