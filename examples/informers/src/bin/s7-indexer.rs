//! S7: objects by namespace and by label, with one index that is added while the informer runs.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::reflector::Options;
use kubewright_cache::{Index, ListWatch, Scope, SharedInformer};
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
        reader.add_index("team", Index::by_label("team"))?;
        println!("namespaces: {:?}", reader.index_values("namespace")?);
        println!("team blue: {:?}", reader.keys_by_index("team", "blue")?);
        session.play().await?;
        println!("team blue: {:?}", reader.keys_by_index("team", "blue")?);
        println!("team red: {:?}", reader.keys_by_index("team", "red")?);
        for key in reader.keys_by_index("team", "red")? {
            println!(
                "{key}: {:?}",
                reader.get(&key).and_then(|map| map.data.clone())
            );
        }
        cancel.cancel();
        anyhow::Ok(())
    };
    let (ran, played) = tokio::join!(informer.run(cancel.clone()), playing);
    ran?;
    played
}
