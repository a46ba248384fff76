//! The controllers whose pods have names that the server makes: ReplicaSet, DaemonSet, Job.

use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::DeleteParams;
use kubewright_cluster::BuiltIn;
use kubewright_sim::{Campaign, FaultKind};
use serde_json::{Value, json};

use crate::workloads::{key, set_image, workload};
use crate::{campaign, object};

fn replica_set() -> Campaign {
    campaign("replicaset", BuiltIn::ReplicaSet)
        .step("create", async |user| {
            let web: ReplicaSet = object(workload("nginx:1", json!({"replicas": 2})));
            user.create(&web).await?;
            Ok(())
        })
        .step("scale up", async |user| {
            let change = |web: &mut ReplicaSet| web.spec.replicas = Some(4);
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("scale down", async |user| {
            let change = |web: &mut ReplicaSet| web.spec.replicas = Some(1);
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<ReplicaSet>(&key()).await
        })
}

fn daemon_set() -> Campaign {
    campaign("daemonset", BuiltIn::DaemonSet)
        .cluster(|cluster| cluster.nodes(2))
        .mask("revision") // Only its order has a meaning.
        .step("create", async |user| {
            // What is kept for a way back is not made again if somebody deletes it.
            let web: DaemonSet = object(workload("nginx:1", json!({"revisionHistoryLimit": 0})));
            user.create(&web).await?;
            Ok(())
        })
        .step("update", async |user| {
            let change = |web: &mut DaemonSet| set_image(&mut web.spec.template, "nginx:2");
            user.modify(&key(), change).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<DaemonSet>(&key()).await
        })
}

/// A Job whose containers end by themselves after a second.
fn ending() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"completions": 3, "parallelism": 2, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1"]}]}}},
    })
}

fn job() -> Campaign {
    campaign("job", BuiltIn::Job)
        // A pod that has ended and is counted is not made again.
        .without(FaultKind::HumanDelete)
        // With a view from before its pods were counted, a Job gets one pod more; that of Kubernetes does too.
        .without(FaultKind::StaleRestart)
        .step("create", async |user| {
            let job: Job = object(ending());
            user.create(&job).await?;
            Ok(())
        })
        .step("delete", async |user| {
            // Without a word about its pods they would stay.
            let jobs = Api::<Job>::namespaced(user.client(), "default");
            jobs.delete("web", &DeleteParams::background()).await?;
            Ok(())
        })
}

#[test]
fn replica_sets_survive_every_single_fault() {
    replica_set().sample(6).check();
}

#[test]
fn daemon_sets_survive_every_single_fault() {
    daemon_set().sample(6).check();
}

#[test]
fn jobs_survive_every_single_fault() {
    job().sample(6).check();
}
