//! Foos come, are scaled and go, once for every single fault.

#![allow(clippy::disallowed_names, reason = "a Foo is called foo")]

use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_foo::{Foo, FooSpec, controller};
use kubewright_sim::Campaign;

fn campaign() -> Campaign {
    Campaign::new("foo", |process| {
        process
            .manager()
            .name("sample-controller")
            .controller(controller())
    })
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
