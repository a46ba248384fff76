//! Foos come, are scaled, renamed and go, once for every single fault.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_foo::{Foo, FooSpec, controller};
use kubewright_sim::{BuiltIn, Campaign, Walk};

/// A run is made of small objects that do not live long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn operator(name: &str) -> Campaign {
    Campaign::new(name, |process| {
        process
            .manager()
            .name("sample-controller")
            .controller(controller())
    })
}

fn campaign() -> Campaign {
    operator("foo")
        // Its workloads come up and go with their owner; it needs nobody else.
        .controllers([
            BuiltIn::Nodes,
            BuiltIn::Scheduler,
            BuiltIn::Deployment,
            BuiltIn::ReplicaSet,
            BuiltIn::GarbageCollector,
        ])
        // A Deployment that is made again meets the ReplicaSet of the one before, and the name in its condition has another hash.
        .mask("status.conditions")
        .install(&Foo::crd())
        .step("create", async |user| {
            let spec = FooSpec {
                deployment_name: "web".to_owned(),
                replicas: Some(2),
            };
            let mut foo = Foo::new("example", spec);
            foo.metadata.namespace = Some("default".to_owned());
            user.create(&foo).await?;
            Ok(())
        })
        .step("scale up", async |user| {
            let scale = |foo: &mut Foo| foo.spec.replicas = Some(4);
            user.modify(&key(), scale).await?;
            Ok(())
        })
        .step("scale down", async |user| {
            let scale = |foo: &mut Foo| foo.spec.replicas = Some(1);
            user.modify(&key(), scale).await?;
            Ok(())
        })
        .step("rename", async |user| {
            let rename = |foo: &mut Foo| foo.spec.deployment_name = "renamed".to_owned();
            user.modify(&key(), rename).await?;
            Ok(())
        })
        .step("delete", async |user| user.delete::<Foo>(&key()).await)
}

fn key() -> Key {
    Key::new("default", "example")
}

#[test]
fn foo_survives_every_single_fault() {
    campaign().sample(15).check();
}

#[test]
fn foo_survives_several_faults_at_once() {
    campaign().check_seeds(5);
}

#[test]
fn every_property_of_a_foo_is_changed() {
    let report = Walk::new::<Foo>(operator("foo-walk")).sample(3).check();
    assert_eq!((report.changed, report.properties), (2, 2));
    assert!(report.without_effect.is_empty(), "{report}");
}
