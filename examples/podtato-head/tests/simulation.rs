//! A figure comes up, is upgraded and goes, once for every sampled fault.

use k8s_openapi::api::core::v1::Service;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_podtato_head::{PodtatoHeadApp, controller};
use kubewright_sim::{BuiltIn, Campaign, Walk};

const SAMPLE: &str = include_str!("../config/samples/podtato_v1alpha1_podtatoheadapp.yaml");

fn key() -> Key {
    Key::new("default", "podtato-head")
}

fn operator(name: &str) -> Campaign {
    Campaign::new(name, |process| {
        process
            .manager()
            .name("podtato-head")
            .controller(controller())
    })
    // Its parts come up and go with their owner; it needs nobody else.
    .controllers([
        BuiltIn::Nodes,
        BuiltIn::Scheduler,
        BuiltIn::Deployment,
        BuiltIn::ReplicaSet,
        BuiltIn::GarbageCollector,
    ])
}

fn campaign() -> Campaign {
    operator("podtato-head")
        .install(&PodtatoHeadApp::crd())
        .step("create", async |user| {
            let sample: PodtatoHeadApp = serde_saphyr::from_str(SAMPLE)?;
            user.create(&sample).await?;
            Ok(())
        })
        .step("upgrade", async |user| {
            let upgrade = |app: &mut PodtatoHeadApp| app.spec.version = "2".to_owned();
            user.modify(&key(), upgrade).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<PodtatoHeadApp>(&key()).await
        })
        .invariant("the entry is exposed after all parts were ready", |state| {
            let is_entry = |it: &Service| it.metadata.name.as_deref() == Some("podtato-head-entry");
            let is_exposed = state.list::<Service>().iter().any(is_entry);
            let apps = state.list::<PodtatoHeadApp>();
            let was_ready = |app: &PodtatoHeadApp| {
                let status = app.status.as_ref();
                status.is_some_and(|status| !status.stable.is_empty())
            };
            !is_exposed || apps.iter().all(was_ready)
        })
}

#[test]
fn podtato_head_survives_every_sampled_fault() {
    campaign().sample(2).check();
}

#[test]
fn podtato_head_survives_several_faults_at_once() {
    campaign().check_seeds(1);
}

#[test]
fn every_property_of_a_podtato_head_is_changed() {
    let sample: PodtatoHeadApp = serde_saphyr::from_str(SAMPLE).expect("a sample");
    // Ports of nodes are random.
    let operator = operator("podtato-head-walk").mask("spec.ports");
    let report = Walk::new::<PodtatoHeadApp>(operator)
        .starting_with(&sample)
        .sample(1)
        .check();
    assert_eq!(report.changed, report.properties, "{report}");
}
