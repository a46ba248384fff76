//! The controllers about the end of objects: the garbage collector and the namespace controller.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::DeleteParams;
use kubewright_cluster::BuiltIn;
use kubewright_runtime::{Error, Key};
use kubewright_sim::{Campaign, User};
use serde_json::{Value, json};

use crate::{campaign, object};

/// A ConfigMap that this Secret owns.
fn owned(name: &str, owner: &Secret) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "ownerReferences": [{
        "apiVersion": "v1", "kind": "Secret", "name": owner.metadata.name, "uid": owner.metadata.uid,
        "blockOwnerDeletion": true,
    }]}})
}

/// Creates a Secret and two ConfigMaps that it owns.
async fn family(user: &User, name: &str) -> Result<(), Error> {
    let secret: Secret = object(json!({"metadata": {"name": name, "namespace": "default"}}));
    let secret = user.create(&secret).await?;
    for number in 0..2 {
        let map: ConfigMap = object(owned(&format!("{name}-{number}"), &secret));
        user.create(&map).await?;
    }
    Ok(())
}

async fn delete(user: &User, name: &str, how: &DeleteParams) -> Result<(), Error> {
    let secrets = Api::<Secret>::namespaced(user.client(), "default");
    secrets.delete(name, how).await?;
    Ok(())
}

fn garbage_collector() -> Campaign {
    campaign("garbage collector", BuiltIn::GarbageCollector)
        .step("create", async |user| {
            for name in ["background", "foreground", "orphan"] {
                family(&user, name).await?;
            }
            Ok(())
        })
        .step("delete", async |user| {
            delete(&user, "background", &DeleteParams::background()).await?;
            delete(&user, "foreground", &DeleteParams::foreground()).await?;
            delete(&user, "orphan", &DeleteParams::orphan()).await
        })
        .step("delete the orphans", async |user| {
            for name in ["orphan-0", "orphan-1"] {
                user.delete::<ConfigMap>(&Key::new("default", name)).await?;
            }
            Ok(())
        })
}

fn namespace() -> Campaign {
    campaign("namespace", BuiltIn::Namespace)
        .step("create", async |user| {
            let space: Namespace = object(json!({"metadata": {"name": "space"}}));
            user.create(&space).await?;
            user.wait(std::time::Duration::from_secs(2)).await;
            let map: ConfigMap = object(json!({"metadata": {"name": "map", "namespace": "space"}}));
            user.create(&map).await?;
            let pod: k8s_openapi::api::core::v1::Pod = object(json!({
                "metadata": {"name": "pod", "namespace": "space"},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            }));
            user.create(&pod).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<Namespace>(&Key::cluster("space")).await
        })
}

#[test]
fn garbage_is_collected_under_every_single_fault() {
    garbage_collector().sample(6).check();
}

#[test]
fn namespaces_go_under_every_single_fault() {
    namespace().sample(6).check();
}
