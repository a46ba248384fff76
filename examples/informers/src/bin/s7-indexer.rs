//! S7: objects by namespace and by label, with one index that is added while the informer runs.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::reflector::Options;
use kubewright_cache::{Event, Index, ListWatch, Reader, Scope, SharedInformer, UnknownIndex};
use kubewright_example_informers::Session;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session::start().await?;
    let source = ListWatch::typed::<ConfigMap>(session.client.clone(), Scope::all());
    let informer: SharedInformer<ConfigMap> = SharedInformer::new(source, Options::default());
    let reader = informer.reader();
    reader.add_index("namespace", Index::by_namespace())?;

    let cancel = CancellationToken::new();
    let playing = async {
        informer.synced().await?;
        println!("namespaces: {:?}", reader.index_values("namespace")?);
        // What is there already is in the index when this returns.
        reader.add_index("team", Index::by_label("team"))?;
        println!("{}", teams(&reader)?);
        let seen = reader.clone();
        // A handler hears of a change when the indexes know it.
        let handler = move |event: Event<ConfigMap>| {
            let name = event.object().key().name();
            match teams(&seen) {
                Ok(teams) => println!("{name} changed: {teams}"),
                Err(error) => println!("{error}"),
            }
        };
        informer.add_handler(handler)?.synced().await?;
        session.play().await?;
        for key in reader.keys_by_index("team", "red")? {
            let map = reader.get(&key);
            println!("{key}: {:?}", map.and_then(|map| map.data.clone()));
        }
        cancel.cancel();
        anyhow::Ok(())
    };
    let (ran, played) = tokio::join!(informer.run(cancel.clone()), playing);
    ran?;
    played
}

/// Who is in which team.
fn teams(reader: &Reader<ConfigMap>) -> Result<String, UnknownIndex> {
    let blue = reader.keys_by_index("team", "blue")?;
    let red = reader.keys_by_index("team", "red")?;
    Ok(format!("team blue {blue:?}, team red {red:?}"))
}
