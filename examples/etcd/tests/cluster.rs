//! An EtcdCluster on simulated nodes, with etcd as a programmed image, under the role in `rbac.yaml`.

#[allow(dead_code)]
mod fake;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use fake::{FakeEtcd, Proxy};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::client::TypedObject;
use kubewright::testing::World;
use kubewright_example_etcd::api::{Backup, MemberState, Restore, Role, Tls};
use kubewright_example_etcd::etcd::Gateway;
use kubewright_example_etcd::{EtcdCluster, Members};
use serde_json::json;

/// A cluster with three nodes that know etcd, and the operator with its role.
struct Scenario {
    world: World,
    etcd: FakeEtcd,
}

impl Deref for Scenario {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

fn sample(size: i32) -> EtcdCluster {
    let spec =
        json!({"size": size, "version": "3.4.23", "tls": "Disabled", "memberTimeoutSeconds": 60});
    let mut cluster = EtcdCluster::new("e", serde_json::from_value(spec).expect("a spec"));
    cluster.metadata.namespace = Some("default".to_owned());
    cluster
}

fn key() -> Key {
    Key::new("default", "e")
}

impl Scenario {
    async fn new() -> Self {
        let etcd = FakeEtcd::new();
        let proxy = Proxy::default();
        let members = proxy.clone();
        let world = World::builder()
            .role(include_str!("../rbac.yaml"))
            .manager(move |manager| manager.state(Members(Arc::new(Gateway(members.clone())))))
            .time_limit(Duration::from_secs(600))
            .nodes(3)
            .seed(1)
            .without_webhooks()
            .start()
            .await;
        let image = "quay.io/coreos/etcd:*";
        world.cluster.nodes().run_image(image, etcd.clone());
        let set = proxy.0.set(world.cluster.client());
        assert!(set.is_ok(), "it is set once");
        Self { world, etcd }
    }

    async fn with(cluster: &EtcdCluster) -> Self {
        let world = Self::new().await;
        world.client.create(cluster).await.expect("it is created");
        world
    }

    async fn change(&self, change: impl FnOnce(&mut EtcdCluster)) {
        let cluster = self.cluster().await;
        let changed = self.client.modify(&cluster, change).await;
        changed.expect("it is changed");
    }

    async fn cluster(&self) -> EtcdCluster {
        let found = self.client.live().get(&key()).await;
        found.expect("an answer").expect("it is there")
    }

    async fn all<K: TypedObject + ResourceExt>(&self) -> Vec<String> {
        let here = Query::all().namespace("default");
        let found = self.client.live().list::<K>(here).await;
        let mut names: Vec<String> = found.expect("an answer").iter().map(K::name_any).collect();
        names.sort();
        names
    }

    /// Waits until the status says that the cluster is as its spec wants it.
    async fn ready(&self, size: usize) -> EtcdCluster {
        self.ready_as(&key(), size).await
    }

    async fn ready_as(&self, key: &Key, size: usize) -> EtcdCluster {
        let is_ready = |cluster: Option<&EtcdCluster>| {
            let Some((cluster, status)) = cluster.and_then(|it| Some((it, it.status.as_ref()?)))
            else {
                return false;
            };
            let voters = status.members.iter().filter(|it| it.role != Role::Learner);
            status.observed_generation == cluster.metadata.generation
                && conditions::is_false(&status.conditions, "Progressing")
                && voters.filter(|it| it.healthy).count() == size
        };
        let cluster = self.until(key, is_ready).await;
        cluster.expect("it is there")
    }

    /// Waits until there is a snapshot.
    async fn backed_up(&self) {
        self.until(&key(), |cluster: Option<&EtcdCluster>| {
            let status = cluster.and_then(|it| it.status.as_ref());
            let backup = status.and_then(|status| status.backup.as_ref());
            backup.is_some_and(|backup| backup.snapshots.len() == 1)
        })
        .await;
    }

    /// Takes the volume of a member away, and its pod.
    async fn lose(&self, member: &str) {
        let claim = Key::new("default", &format!("data-{member}"));
        let claim = self.client.live().get(&claim).await.expect("an answer");
        let claim: PersistentVolumeClaim = claim.expect("it is there");
        let pod = Key::new("default", member);
        let pod = self.client.live().get(&pod).await.expect("an answer");
        let pod: Pod = pod.expect("it is there");
        let deleted = self.client.delete(&claim, Delete::background()).await;
        deleted.expect("it is deleted");
        let deleted = self.client.delete(&pod, Delete::background()).await;
        deleted.expect("it is deleted");
    }

    /// Has a certificate be due, and waits until it is renewed.
    async fn renew(&self, name: &str) {
        let key = Key::new("default", name);
        let secret: Option<Secret> = self.client.live().get(&key).await.expect("an answer");
        let due = |secret: &mut Secret| {
            let renew = "etcd.kubewright.dev/renew-after".to_owned();
            let sixty_days_later = secret
                .annotations_mut()
                .insert(renew, "2020-01-01T00:00:00Z".to_owned());
            assert!(
                sixty_days_later.is_some(),
                "it says when it is to be renewed"
            );
        };
        let changed = self.client.modify(&secret.expect("it is there"), due).await;
        changed.expect("it is changed");
        self.until_event("CertificateRenewed").await;
    }

    fn members(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .etcd
            .model()
            .members
            .into_iter()
            .map(|it| it.name)
            .collect();
        names.sort();
        names
    }
}

fn members(cluster: &EtcdCluster) -> Vec<MemberState> {
    cluster
        .status
        .as_ref()
        .map(|it| it.members.clone())
        .unwrap_or_default()
}

fn paths(calls: &[String]) -> Vec<&str> {
    let actions = calls.iter().filter_map(|call| call.split(' ').next());
    actions.filter_map(|path| path.rsplit('/').next()).collect()
}

#[tokio::test(start_paused = true)]
async fn three_members_come_up_one_at_a_time_as_learners_first() {
    let world = Scenario::with(&sample(3)).await;
    let cluster = world.ready(3).await;
    assert_eq!(
        paths(&world.etcd.calls()),
        ["add", "promote", "add", "promote"]
    );
    assert_eq!(world.members(), ["e-0", "e-1", "e-2"]);
    assert_eq!(world.all::<Pod>().await, ["e-0", "e-1", "e-2"]);
    let claims = world.all::<PersistentVolumeClaim>().await;
    assert_eq!(claims, ["data-e-0", "data-e-1", "data-e-2"]);
    let services = world.all::<Service>().await;
    assert!(services.contains(&"e".to_owned()) && services.contains(&"e-client".to_owned()));
    let status = cluster.status.clone().unwrap_or_default();
    assert_eq!(status.leader.as_deref(), Some("e-0"));
    assert_eq!(status.cluster_id.as_deref(), Some("4d"));
    assert_eq!(status.version.as_deref(), Some("3.4.23"));
    assert!(conditions::is_true(&status.conditions, "Available"));
    assert!(conditions::is_false(&status.conditions, "Degraded"));
    let roles: Vec<Role> = members(&cluster).iter().map(|it| it.role).collect();
    assert_eq!(roles, [Role::Leader, Role::Follower, Role::Follower]);
    world.settled().await;
    world.assert_no_writes(Duration::from_secs(600)).await;
}

#[tokio::test(start_paused = true)]
async fn scale_in_removes_members_before_their_pods_and_claims() {
    let world = Scenario::with(&sample(3)).await;
    world.ready(3).await;
    world.etcd.lead("e-2");
    world.change(|cluster| cluster.spec.size = 1).await;
    world.ready(1).await;
    let calls = world.etcd.calls();
    assert_eq!(
        paths(&calls)[4..],
        ["transfer-leadership", "remove", "remove"]
    );
    assert_eq!(world.members(), ["e-0"]);
    let gone = async || (world.all::<Pod>().await == ["e-0"]).then_some(());
    world.until_some("pods are gone", gone).await;
    assert_eq!(world.all::<PersistentVolumeClaim>().await, ["data-e-0"]);
    // And out again, with names that were used before.
    world.change(|cluster| cluster.spec.size = 3).await;
    world.ready(3).await;
    assert_eq!(world.all::<Pod>().await, ["e-0", "e-1", "e-2"]);
}

#[tokio::test(start_paused = true)]
async fn member_that_crashes_comes_back_with_its_data() {
    let world = Scenario::with(&sample(3)).await;
    let before = members(&world.ready(3).await);
    world
        .cluster
        .nodes()
        .pod("default/e-1")
        .crash(137)
        .await
        .expect("it crashes");
    world.settled_for(Duration::from_secs(30)).await;
    let after = members(&world.ready(3).await);
    let ids = |members: &[MemberState]| members.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&after), "it is the same member");
}

#[tokio::test(start_paused = true)]
async fn member_whose_volume_is_lost_is_replaced_by_a_new_one() {
    let world = Scenario::with(&sample(3)).await;
    world.ready(3).await;
    world.lose("e-1").await;
    let replaced = async || (world.members() == ["e-0", "e-2", "e-3"]).then_some(());
    world.until_some("e-1 is replaced", replaced).await;
    world.ready(3).await;
    assert_eq!(world.all::<Pod>().await, ["e-0", "e-2", "e-3"]);
    assert!(world.until_event("MemberRemoved").await.message.is_some());
}

#[tokio::test(start_paused = true)]
async fn operator_that_is_killed_at_any_time_goes_on() {
    let world = Scenario::with(&sample(5)).await;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(777)).await;
        world.kill_operator().await;
        world.start_operator().await.expect("it starts");
    }
    world.ready(5).await;
    assert_eq!(world.members(), world.all::<Pod>().await);
}

#[tokio::test(start_paused = true)]
async fn upgrade_goes_one_pod_at_a_time_and_moves_the_leader_last() {
    let world = Scenario::with(&sample(3)).await;
    world.ready(3).await;
    world
        .change(|cluster| cluster.spec.version = "3.5.1".to_owned())
        .await;
    world
        .until_some("all run the new version", async || {
            let model = world.etcd.model();
            assert!(model.running.len() >= 2, "more than one is away: {model:?}");
            let new = model.running.values().filter(|it| it.version == "3.5.1");
            (new.count() == 3).then_some(())
        })
        .await;
    let cluster = world.ready(3).await;
    let version = cluster.status.and_then(|status| status.version);
    assert_eq!(version.as_deref(), Some("3.5.1"));
    assert_eq!(paths(&world.etcd.calls())[4..], ["transfer-leadership"]);
}

#[tokio::test(start_paused = true)]
async fn snapshots_and_defragmentation_come_when_they_are_due() {
    let mut cluster = sample(1);
    cluster.spec.backup = Some(Backup {
        interval_seconds: 300,
        keep: 2,
        storage: None,
    });
    cluster.spec.defragment_interval_seconds = Some(600);
    let world = Scenario::with(&cluster).await;
    world.backed_up().await;
    tokio::time::sleep(Duration::from_secs(3 * 300)).await;
    let status = world.cluster().await.status.unwrap_or_default();
    let backup = status.backup.expect("there are snapshots");
    let names: Vec<&str> = backup.snapshots.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        backup.count, 4,
        "at once and after each five minutes: {backup:?}"
    );
    assert_eq!(
        names,
        ["slot-1.db", "slot-0.db"],
        "two are kept, the newest first"
    );
    assert!(
        world.all::<Job>().await.is_empty(),
        "Jobs that are done are deleted"
    );
    let calls = world.etcd.calls();
    let saves = calls
        .iter()
        .filter(|it| it.contains("snapshot save /backup/slot-"));
    assert_eq!(saves.count(), 4);
    assert_eq!(
        paths(&calls)
            .iter()
            .filter(|it| **it == "defragment")
            .count(),
        2
    );
    assert!(
        world
            .all::<PersistentVolumeClaim>()
            .await
            .contains(&"e-backup".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn certificates_are_made_for_members_and_clients() {
    let mut cluster = sample(3);
    cluster.spec.tls = Tls::Enabled;
    let world = Scenario::with(&cluster).await;
    world.ready(3).await;
    let secrets = world.all::<Secret>().await;
    assert_eq!(
        secrets,
        ["e-0-tls", "e-1-tls", "e-2-tls", "e-ca", "e-client-tls"]
    );
    let read = async || {
        let key = Key::new("default", "e-1-tls");
        let secret: Option<Secret> = world.client.live().get(&key).await.expect("an answer");
        secret.and_then(|secret| secret.data).expect("it has data")
    };
    let before = read().await;
    world.renew("e-1-tls").await;
    let after = read().await;
    assert_eq!(before["ca.crt"], after["ca.crt"], "the authority stays");
    assert_ne!(
        before["tls.crt"], after["tls.crt"],
        "the certificate is renewed"
    );
    world.ready(3).await;
}

#[tokio::test(start_paused = true)]
async fn whole_life_needs_exactly_the_role() {
    let mut cluster = sample(3);
    cluster.spec.tls = Tls::Enabled;
    cluster.spec.backup = Some(Backup {
        interval_seconds: 300,
        keep: 2,
        storage: None,
    });
    let world = Scenario::with(&cluster).await;
    world.ready(3).await;
    world.backed_up().await;
    world.renew("e-0-tls").await;
    world.renew("e-0-tls").await;
    world.lose("e-1").await;
    let replaced = async || (world.members() == ["e-0", "e-2", "e-3"]).then_some(());
    world.until_some("e-1 is replaced", replaced).await;
    world.ready(3).await;
    world.change(|cluster| cluster.spec.size = 1).await;
    world.ready(1).await;

    let mut restored = sample(1);
    restored.metadata.name = Some("r".to_owned());
    restored.spec.restore = Some(Restore {
        claim_name: "e-backup".to_owned(),
        snapshot: "slot-0.db".to_owned(),
    });
    world.client.create(&restored).await.expect("it is created");
    world.ready_as(&Key::new("default", "r"), 1).await;
    world.assert_exact_role();
}

#[tokio::test(start_paused = true)]
async fn restore_that_cannot_begin_waits_and_follows_the_version() {
    let mut cluster = sample(1);
    cluster.spec.restore = Some(Restore {
        claim_name: "nowhere".to_owned(),
        snapshot: "slot-0.db".to_owned(),
    });
    let world = Scenario::with(&cluster).await;
    let until_image = async |image: &str| {
        let key = Key::new("default", "e-restore");
        let has_image = |pod: Option<&Pod>| {
            let spec = pod.and_then(|pod| pod.spec.as_ref());
            let container = spec.and_then(|spec| spec.containers.first());
            container.is_some_and(|it| it.image.as_deref() == Some(image))
        };
        world.until(&key, has_image).await;
    };
    until_image("quay.io/coreos/etcd:v3.4.23").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = world.reconciles().len();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let runs = world.reconciles().len() - before;
    assert!(runs <= 25, "it was looked at {runs} times in 100 seconds");

    world
        .change(|cluster| cluster.spec.version = "3.4.24".to_owned())
        .await;
    until_image("quay.io/coreos/etcd:v3.4.24").await;
}
