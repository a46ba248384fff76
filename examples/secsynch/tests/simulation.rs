//! A Secret is copied, changed, and the copies go, once for every single fault.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_secsynch::{SecSynch, SecSynchSpec, controller};
use kubewright_sim::Campaign;

fn namespace(name: &str) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    namespace
}

fn secret(value: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some("token".to_owned());
    secret.metadata.namespace = Some("default".to_owned());
    let bytes = ByteString(value.as_bytes().to_vec());
    secret.data = Some(BTreeMap::from([("token".to_owned(), bytes)]));
    secret
}

fn synch(destinations: &[&str]) -> SecSynch {
    let spec = SecSynchSpec {
        secret_name: "token".to_owned(),
        source_namespace: "default".to_owned(),
        destination_namespaces: destinations.iter().map(|name| (*name).to_owned()).collect(),
    };
    let mut synch = SecSynch::new("sync", spec);
    synch.metadata.namespace = Some("default".to_owned());
    synch
}

fn campaign() -> Campaign {
    Campaign::new("secsynch", |process| {
        process.manager().name("secsynch").controller(controller())
    })
    // It needs nobody else, and a run without the built-in controllers is ten times cheaper.
    .cluster(|cluster| cluster.without_controllers())
    .install(&SecSynch::crd())
    .install(&namespace("a"))
    .install(&namespace("b"))
    .step("create", async |user| {
        user.create(&secret("one")).await?;
        user.create(&synch(&["a", "b"])).await?;
        Ok(())
    })
    .step("change the secret", async |user| {
        let key = Key::new("default", "token");
        let change = |token: &mut Secret| token.data = secret("two").data;
        user.modify(&key, change).await?;
        Ok(())
    })
    .step("one copy less", async |user| {
        let change = |it: &mut SecSynch| it.spec = synch(&["b"]).spec;
        user.modify(&Key::new("default", "sync"), change).await?;
        Ok(())
    })
    .step("delete", async |user| {
        user.delete::<SecSynch>(&Key::new("default", "sync"))
            .await?;
        user.delete::<Secret>(&Key::new("default", "token")).await
    })
}

#[test]
fn secsynch_survives_every_single_fault() {
    campaign().sample(100).check();
}

#[test]
fn secsynch_survives_several_faults_at_once() {
    campaign().check_seeds(30);
}
