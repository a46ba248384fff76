//! The controllers of workloads that name their objects themselves: Deployment, StatefulSet.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kubewright_cluster::BuiltIn;
use kubewright_runtime::Key;
use kubewright_sim::Campaign;
use serde_json::{Value, json};

use crate::{campaign, object};

pub(crate) fn key() -> Key {
    Key::new("default", "web")
}

/// A workload of the name `web` with these further fields in its spec.
pub(crate) fn workload(image: &str, more: Value) -> Value {
    let mut workload = json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}]}}},
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        workload["spec"][name] = value.clone();
    }
    workload
}

pub(crate) fn set_image(template: &mut k8s_openapi::api::core::v1::PodTemplateSpec, image: &str) {
    let containers = template
        .spec
        .iter_mut()
        .flat_map(|spec| &mut spec.containers);
    containers.for_each(|container| container.image = Some(image.to_owned()));
}

fn deployment() -> Campaign {
    campaign("deployment", BuiltIn::Deployment)
        // The revision: only its order has a meaning.
        .mask("metadata.annotations")
        .step("create", async |user| {
            // What is kept for a way back is not made again if somebody deletes it.
            let more = json!({"replicas": 2, "revisionHistoryLimit": 0});
            let web: Deployment = object(workload("nginx:1", more));
            user.create(&web).await?;
            Ok(())
        })
        .step("roll out", async |user| {
            let change = |web: &mut Deployment| {
                let spec = &mut web.spec;
                set_image(&mut spec.template, "nginx:2");
            };
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("scale", async |user| {
            let change = |web: &mut Deployment| {
                web.spec.replicas = Some(3);
            };
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<Deployment>(&key()).await
        })
}

fn stateful_set() -> Campaign {
    campaign("statefulset", BuiltIn::StatefulSet)
        .mask("revision") // Only its order has a meaning.
        .step("create", async |user| {
            let more = json!({"replicas": 2, "serviceName": "web", "revisionHistoryLimit": 0});
            let web: StatefulSet = object(workload("nginx:1", more));
            user.create(&web).await?;
            Ok(())
        })
        .step("update", async |user| {
            let change = |web: &mut StatefulSet| {
                let spec = &mut web.spec;
                set_image(&mut spec.template, "nginx:2");
            };
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("scale down", async |user| {
            user.modify(&key(), |web: &mut StatefulSet| {
                web.spec.replicas = Some(1);
            })
            .await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<StatefulSet>(&key()).await
        })
}

#[test]
fn deployments_survive_every_single_fault() {
    deployment().sample(6).check();
}

#[test]
fn stateful_sets_survive_every_single_fault() {
    stateful_set().sample(6).check();
}
