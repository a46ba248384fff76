//! A Secret is copied, changed, and the copies go, once for every single fault.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_secsynch::{SecSynch, SecSynchSpec, controller};
use kubewright_sim::{Campaign, Walk};

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

fn operator(name: &str) -> Campaign {
    Campaign::new(name, |process| {
        process.manager().name("secsynch").controller(controller())
    })
    // It needs nobody else, and a run without the built-in controllers is ten times cheaper.
    .cluster(|cluster| cluster.without_controllers())
    .install(&namespace("a"))
    .install(&namespace("b"))
}

fn campaign() -> Campaign {
    operator("secsynch")
        .install(&SecSynch::crd())
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

#[test]
fn every_property_of_a_secsynch_is_changed() {
    let prepared = operator("secsynch-walk")
        // It says when something was last done, which depends on what was done.
        .mask("status")
        .step("make the secrets", async |user| {
            user.create(&secret("one")).await?;
            let mut other = secret("two");
            other.metadata.name = Some("other".to_owned());
            user.create(&other).await?;
            other.metadata.namespace = Some("a".to_owned());
            user.create(&other).await?;
            Ok(())
        });
    let report = Walk::new::<SecSynch>(prepared)
        .starting_with(&synch(&["b"]))
        .values("spec.secretName", ["other", "token"])
        .values("spec.sourceNamespace", ["a", "default"])
        .values("spec.destinationNamespaces", ["a", "b", "default"])
        .check();
    assert_eq!((report.changed, report.properties), (3, 3));
    assert!(report.without_effect.is_empty(), "{report}");
}
