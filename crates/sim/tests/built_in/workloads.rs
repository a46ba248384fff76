//! The controllers of workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use kubewright_cluster::BuiltIn;
use kubewright_runtime::Key;
use kubewright_sim::Campaign;
use serde_json::{Value, json};

use crate::{campaign, object};

fn key() -> Key {
    Key::new("default", "web")
}

/// A workload of the name `web` with these further fields in its spec.
fn workload(image: &str, more: Value) -> Value {
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

fn set_image(template: &mut k8s_openapi::api::core::v1::PodTemplateSpec, image: &str) {
    let containers = template
        .spec
        .iter_mut()
        .flat_map(|spec| &mut spec.containers);
    containers.for_each(|container| container.image = Some(image.to_owned()));
}

fn deployment() -> Campaign {
    campaign("deployment", BuiltIn::Deployment)
        .step("create", async |user| {
            let web: Deployment = object(workload("nginx:1", json!({"replicas": 2})));
            user.create(&web).await?;
            Ok(())
        })
        .step("roll out", async |user| {
            let change = |web: &mut Deployment| {
                let spec = web.spec.as_mut().expect("it has a spec");
                set_image(&mut spec.template, "nginx:2");
            };
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("scale", async |user| {
            let change = |web: &mut Deployment| {
                web.spec.as_mut().expect("it has a spec").replicas = Some(3);
            };
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<Deployment>(&key()).await
        })
}

fn replica_set() -> Campaign {
    campaign("replicaset", BuiltIn::ReplicaSet)
        .step("create", async |user| {
            let web: ReplicaSet = object(workload("nginx:1", json!({"replicas": 2})));
            user.create(&web).await?;
            Ok(())
        })
        .step("scale up", async |user| {
            user.modify(&key(), |web: &mut ReplicaSet| {
                web.spec.as_mut().expect("it has a spec").replicas = Some(4);
            })
            .await?;
            Ok(())
        })
        .step("scale down", async |user| {
            user.modify(&key(), |web: &mut ReplicaSet| {
                web.spec.as_mut().expect("it has a spec").replicas = Some(1);
            })
            .await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<ReplicaSet>(&key()).await
        })
}

fn stateful_set() -> Campaign {
    campaign("statefulset", BuiltIn::StatefulSet)
        .step("create", async |user| {
            let more = json!({"replicas": 2, "serviceName": "web"});
            let web: StatefulSet = object(workload("nginx:1", more));
            user.create(&web).await?;
            Ok(())
        })
        .step("update", async |user| {
            let change = |web: &mut StatefulSet| {
                let spec = web.spec.as_mut().expect("it has a spec");
                set_image(&mut spec.template, "nginx:2");
            };
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("scale down", async |user| {
            user.modify(&key(), |web: &mut StatefulSet| {
                web.spec.as_mut().expect("it has a spec").replicas = Some(1);
            })
            .await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<StatefulSet>(&key()).await
        })
}

fn daemon_set() -> Campaign {
    campaign("daemonset", BuiltIn::DaemonSet)
        .cluster(|cluster| cluster.nodes(2))
        .step("create", async |user| {
            let web: DaemonSet = object(workload("nginx:1", json!({})));
            user.create(&web).await?;
            Ok(())
        })
        .step("update", async |user| {
            let change = |web: &mut DaemonSet| {
                let spec = web.spec.as_mut().expect("it has a spec");
                set_image(&mut spec.template, "nginx:2");
            };
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<DaemonSet>(&key()).await
        })
}

fn job() -> Campaign {
    campaign("job", BuiltIn::Job)
        .step("create", async |user| {
            let job: Job = object(json!({
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"completions": 3, "parallelism": 2, "template": {"spec": {
                    "restartPolicy": "Never", "containers": [{"name": "main", "image": "work:1"}]}}},
            }));
            user.create(&job).await?;
            Ok(())
        })
        .step("delete", async |user| user.delete::<Job>(&key()).await)
}

#[test]
fn deployments_survive_every_single_fault() {
    deployment().sample(6).check();
}

#[test]
fn replica_sets_survive_every_single_fault() {
    replica_set().sample(6).check();
}

#[test]
fn stateful_sets_survive_every_single_fault() {
    stateful_set().sample(6).check();
}

#[test]
fn daemon_sets_survive_every_single_fault() {
    daemon_set().sample(6).check();
}

#[test]
fn jobs_survive_every_single_fault() {
    job().sample(6).check();
}
