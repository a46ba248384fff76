//! In the end everything is as it was wished for.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, Pod, PodCondition, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use kubewright_cluster::Cluster;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

/// How long it may take when nothing disturbs any more.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Waits until nothing is left to be done.
pub(crate) async fn wait(cluster: &Cluster, seed: u64) {
    let end = Instant::now() + PATIENCE;
    loop {
        let unsettled = unsettled(cluster).await;
        if unsettled.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "seed {seed}: {unsettled:#?}");
        sleep(Duration::from_secs(20)).await;
    }
}

async fn all<K>(cluster: &Cluster) -> Vec<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let api = Api::<K>::default_namespaced(cluster.client());
    api.list(&ListParams::default())
        .await
        .expect("an answer")
        .items
}

/// What is not as it should be, in words.
async fn unsettled(cluster: &Cluster) -> Vec<String> {
    let mut found = Vec::new();
    for deployment in all::<Deployment>(cluster).await {
        let (spec, status) = (
            &deployment.spec,
            deployment.status.clone().unwrap_or_default(),
        );
        let counts = [
            status.replicas,
            status.updated_replicas,
            status.ready_replicas,
        ];
        let wanted = spec.replicas.unwrap_or(1);
        if counts.map(Option::unwrap_or_default) != [wanted; 3]
            || status.observed_generation != deployment.metadata.generation
        {
            found.push(format!(
                "deployment {}: {counts:?} of {wanted}",
                deployment.name_any()
            ));
        }
    }
    for set in all::<ReplicaSet>(cluster).await {
        let status = set.status.clone().unwrap_or_default();
        let wanted = set.spec.replicas.unwrap_or(1);
        if (status.replicas, status.ready_replicas.unwrap_or_default()) != (wanted, wanted) {
            found.push(format!("set {}: {status:?} of {wanted}", set.name_any()));
        }
    }
    for set in all::<StatefulSet>(cluster).await {
        let status = set.status.clone().unwrap_or_default();
        let wanted = set.spec.replicas.unwrap_or(1);
        if (status.replicas, status.ready_replicas.unwrap_or_default()) != (wanted, wanted)
            || status.update_revision != status.current_revision
        {
            found.push(format!(
                "stateful set {}: {status:?} of {wanted}",
                set.name_any()
            ));
        }
    }
    for set in all::<DaemonSet>(cluster).await {
        let status = set.status.clone().unwrap_or_default();
        if (status.number_ready, status.updated_number_scheduled) != (3, Some(3)) {
            found.push(format!("daemon set {}: {status:?}", set.name_any()));
        }
    }
    for job in all::<Job>(cluster).await {
        let status = job.status.clone().unwrap_or_default();
        // One of which nodes evicted too many pods has failed.
        let mut conditions = status.conditions.iter().flatten();
        let has_failed = conditions.any(|it| it.type_ == "Failed" && it.status == "True");
        if status.completion_time.is_none() && !has_failed {
            found.push(format!("job {}: {:?}", job.name_any(), job.status));
        }
    }
    found.extend(unsettled_edges(cluster).await);
    let pods = all::<Pod>(cluster).await;
    let pending =
        |pod: &&Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Pending");
    let waiting = pods.iter().filter(pending);
    found.extend(waiting.map(|pod| format!("pod {} does not run", pod.name_any())));
    // Pods that nodes evicted stay as they ended.
    let has_failed =
        |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Failed");
    let unready = pods.iter().filter(|pod| !has_failed(pod)).filter(|pod| {
        let conditions = pod
            .status
            .iter()
            .flat_map(|it| it.conditions.iter().flatten());
        let is_unready = |it: &PodCondition| it.type_ == "Ready" && it.status != "True";
        let is_over = |it: &PodCondition| it.reason.as_deref() == Some("PodCompleted");
        conditions
            .into_iter()
            .any(|it| is_unready(it) && !is_over(it))
    });
    found.extend(unready.map(|pod| format!("pod {} is not ready", pod.name_any())));
    let leaving = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_some());
    found.extend(leaving.map(|pod| format!("pod {} has not gone", pod.name_any())));
    found
}

/// The same of what came later: old controllers, addresses, claims, certificates.
async fn unsettled_edges(cluster: &Cluster) -> Vec<String> {
    let mut found = Vec::new();
    for controller in all::<ReplicationController>(cluster).await {
        let status = controller.status.clone().unwrap_or_default();
        let wanted = controller.spec.as_ref().and_then(|spec| spec.replicas);
        if (Some(status.replicas), status.ready_replicas.or(Some(0))) != (wanted, wanted) {
            found.push(format!("controller {}: {status:?}", controller.name_any()));
        }
    }
    for service in all::<Service>(cluster).await {
        let balanced = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
        let status = service.status.clone().unwrap_or_default();
        let ingress = status.load_balancer.and_then(|it| it.ingress);
        if balanced == Some("LoadBalancer") && ingress.is_none() {
            found.push(format!("service {} has no address", service.name_any()));
        }
    }
    found.extend(unsettled_claims(cluster).await);
    for budget in all::<PodDisruptionBudget>(cluster).await {
        let status = budget.status.clone().unwrap_or_default();
        let (healthy, desired) = (status.current_healthy, status.desired_healthy);
        let allowed = healthy
            .zip(desired)
            .map(|(healthy, desired)| (healthy - desired).max(0));
        if status.observed_generation != budget.metadata.generation
            || (status.expected_pods > Some(0) && status.disruptions_allowed != allowed)
        {
            found.push(format!("budget {}: {status:?}", budget.name_any()));
        }
    }
    let requests = Api::<CertificateSigningRequest>::all(cluster.client());
    for request in requests
        .list(&ListParams::default())
        .await
        .expect("an answer")
    {
        let status = request.status.clone().unwrap_or_default();
        let is_approved = status
            .conditions
            .iter()
            .flatten()
            .any(|it| it.type_ == "Approved");
        if is_approved && status.certificate.is_none() {
            found.push(format!("request {} is not signed", request.name_any()));
        }
    }
    found
}

/// Claims that are not bound, have less than they ask for, or have outlived the pod or the set that owned them.
async fn unsettled_claims(cluster: &Cluster) -> Vec<String> {
    let pods = all::<Pod>(cluster).await;
    let sets = all::<StatefulSet>(cluster).await;
    let uids: BTreeSet<_> = pods.iter().filter_map(ResourceExt::uid).collect();
    let uids: BTreeSet<_> = sets
        .iter()
        .filter_map(ResourceExt::uid)
        .chain(uids)
        .collect();
    let mut found = Vec::new();
    for claim in all::<PersistentVolumeClaim>(cluster).await {
        let owners = claim.owner_references();
        let lives = owners.is_empty() || owners.iter().any(|owner| uids.contains(&owner.uid));
        let status = claim.status.clone().unwrap_or_default();
        let requests = claim.spec.clone().and_then(|spec| spec.resources?.requests);
        if !lives || status.phase.as_deref() != Some("Bound") || status.capacity != requests {
            let name = claim.name_any();
            found.push(format!("claim {name}: {status:?}, owner lives: {lives}"));
        }
    }
    found
}
