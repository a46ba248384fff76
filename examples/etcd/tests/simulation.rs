//! A cluster comes up, shrinks and goes, once for every single fault: calls to etcd have the same faults as writes to the server.

#[allow(dead_code)]
mod fake;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use fake::FakeEtcd;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_cluster::NodesOptions;
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, Exit, Health, ProbeKind, Program,
};
use kubewright_example_etcd::etcd::Gateway;
use kubewright_example_etcd::transport::{Answer, Endpoint, Transport, TransportError};
use kubewright_example_etcd::{EtcdCluster, Members, controller};
use kubewright_sim::{BuiltIn, Campaign, External, ExternalSystem, FaultKind, State, Walk};
use serde_json::{Value, json};

thread_local! {
    /// The etcd of the run of this thread: a run has one thread for everything.
    static CURRENT: RefCell<FakeEtcd> = RefCell::new(FakeEtcd::new());
}

/// The etcd of a run, as a system outside of the cluster.
struct Outside(FakeEtcd);

impl Outside {
    /// Etcd for the run that begins on this thread.
    fn new() -> Self {
        let etcd = FakeEtcd::new();
        CURRENT.set(etcd.clone());
        Self(etcd)
    }
}

impl ExternalSystem for Outside {
    fn state(&self) -> Value {
        // A cluster whose processes are all gone is gone with its claims.
        let alive = self.0.alive();
        let members = alive.iter().flat_map(|model| &model.members);
        let members = members.map(|it| json!({"name": it.name, "learner": it.learner}));
        json!({"members": members.collect::<Vec<Value>>()})
    }
}

/// The image on the nodes: the etcd of the run.
#[derive(Clone, Copy)]
struct Image;

fn current() -> FakeEtcd {
    CURRENT.with_borrow(FakeEtcd::clone)
}

impl Program for Image {
    async fn run(&self, container: ContainerConfig) -> Exit {
        Program::run(&current(), container).await
    }

    async fn http(
        &self,
        container: ContainerId,
        port: u16,
        request: Request<Bytes>,
    ) -> Option<Response<Bytes>> {
        Program::http(&current(), container, port, request).await
    }

    async fn probe(&self, container: ContainerId, kind: ProbeKind) -> Health {
        Program::probe(&current(), container, kind).await
    }
}

/// Requests to the etcd of the run, which get lost and refused as the plan says.
struct Wire(External<Outside>);

impl Transport for Wire {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'a, Result<Answer, TransportError>> {
        Box::pin(async move {
            let lost = || {
                let error = std::io::ErrorKind::ConnectionReset.into();
                TransportError::Connect(endpoint.member.clone(), error)
            };
            let pod = format!("{}/{}", endpoint.namespace, endpoint.member);
            let ask = |outside: &Outside| outside.0.answer(&pod, path, &body);
            let (_, verb) = path.rsplit_once('/').unwrap_or_default();
            let answer = match verb {
                "status" | "list" => self.0.read(ask),
                // The leader is whoever it is: a call is named by what it is about.
                _ => self.0.call(verb, "etcd", ask).await.map_err(|_| lost())?,
            };
            let (code, body) = answer.ok_or_else(lost)?;
            let body = Bytes::from(body.to_string());
            Ok(Answer { code, body })
        })
    }
}

fn key() -> Key {
    Key::new("default", "e")
}

fn sample() -> EtcdCluster {
    let spec = json!({"size": 3, "version": "3.4.23", "tls": "Disabled"});
    let spec = serde_json::from_value(spec).expect("a spec");
    let mut cluster = EtcdCluster::new("e", spec);
    cluster.metadata.namespace = Some("default".to_owned());
    cluster
}

/// Whether no more than one member of each cluster is on its way out. A member that etcd does not list any more is none.
fn stops_one_at_a_time(state: &State) -> bool {
    let stopping: Vec<String> = state
        .list::<Pod>()
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_some())
        .filter_map(|pod| pod.metadata.name.clone())
        .collect();
    state.list::<EtcdCluster>().iter().all(|cluster| {
        let members = cluster.status.iter().flat_map(|status| &status.members);
        let leaving = members.filter(|member| stopping.contains(&member.name));
        cluster.metadata.deletion_timestamp.is_some() || leaving.count() <= 1
    })
}

fn operator(name: &str) -> Campaign {
    Campaign::new(name, |process| {
        let wire = Wire(process.external::<Outside>());
        let members = Members(Arc::new(Gateway(wire)));
        process
            .manager()
            .name("etcd")
            .state(members)
            .controller(controller())
    })
    .external(Outside::new)
    .cluster(|cluster| {
        let options = NodesOptions::default().count(1);
        let options = options.run_image("quay.io/coreos/etcd:*", Image);
        cluster.node_options(options.run_image("mirror.example.com/etcd:*", Image))
    })
    // Its pods come up on volumes, its Jobs end, and all goes with its owner; it needs nobody else.
    .controllers([
        BuiltIn::Nodes,
        BuiltIn::Scheduler,
        BuiltIn::StorageClass,
        BuiltIn::Volumes,
        BuiltIn::Job,
        BuiltIn::GarbageCollector,
    ])
    .invariant("no two members stop at once", stops_one_at_a_time)
}

fn campaign() -> Campaign {
    operator("etcd")
        // People who delete a volume or the object of a pod cost a member; what becomes of that is in `plan.rs` and `cluster.rs`.
        .without(FaultKind::HumanDelete)
        .without(FaultKind::HumanEdit)
        .install(&EtcdCluster::crd())
        .step("create", async |user| {
            user.create(&sample()).await?;
            Ok(())
        })
        .step("shrink", async |user| {
            let shrink = |cluster: &mut EtcdCluster| cluster.spec.size = 1;
            user.modify(&key(), shrink).await?;
            Ok(())
        })
        .step("delete", async |user| {
            user.delete::<EtcdCluster>(&key()).await
        })
}

#[test]
fn etcd_cluster_survives_every_single_fault() {
    campaign().sample(2).check();
}

#[test]
fn etcd_cluster_survives_several_faults_at_once() {
    campaign().check_seeds(1);
}

#[test]
fn every_property_of_an_etcd_cluster_is_changed() {
    let prepared = operator("etcd-walk")
        // Keys are random, and a certificate says when it was made.
        .mask("data")
        // What snapshots there are stays known when no more are taken, and the claim with them outlives the cluster.
        .mask("status.backup")
        .mask("status.lastDefragmentation")
        // Ids of members are another one for each that is added.
        .mask("status.members")
        .mask("metadata.annotations")
        .step("make claims with snapshots", async |user| {
            for name in ["e-backup", "claim-name", "other-backup"] {
                let claim = json!({
                    "metadata": {"name": name, "namespace": "default"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                });
                let claim = serde_json::from_value(claim).map_err(Error::msg)?;
                user.create::<PersistentVolumeClaim>(&claim).await?;
            }
            Ok(())
        });
    // It has everything, so that everything can be taken away.
    let mut full = sample();
    full.spec.size = 1;
    // As the default one but for the patch: minor versions never go back.
    full.spec.version = "3.5.20".to_owned();
    full.spec.storage.size = "3Gi".to_owned();
    full.spec.defragment_interval_seconds = Some(300_000);
    let backup = json!({"intervalSeconds": 300_000, "keep": 2, "storage": {"size": "3Gi"}});
    full.spec.backup = serde_json::from_value(backup).ok();
    let restore = json!({"claimName": "other-backup", "snapshot": "slot-1.db"});
    full.spec.restore = serde_json::from_value(restore).ok();
    let report = Walk::new::<EtcdCluster>(prepared)
        .starting_with(&full)
        .values("spec.version", ["3.5.19", "3.5.22"])
        .values(
            "spec.image",
            ["mirror.example.com/etcd", "quay.io/coreos/etcd"],
        )
        // Intervals that are over before the run is would be changes in quiet time.
        .values("spec.backup.intervalSeconds", [100_000, 200_000])
        .values("spec.defragmentIntervalSeconds", [100_000, 200_000])
        .values("spec.restore.claimName", ["claim-name", "other-backup"])
        .values("spec.storage.className", ["standard"])
        .values("spec.backup.storage.className", ["standard"])
        .sample(1)
        .check();
    assert_eq!(report.changed, report.properties, "{report}");
}
