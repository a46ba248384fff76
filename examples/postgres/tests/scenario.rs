//! A PostgresCluster on simulated nodes, in virtual time, with the operator's own role. What runs in the pods is a model of the agent
//! with its real lease: no PostgreSQL is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_cluster::node::runtime::{ContainerConfig, ContainerId, Exit, Program};
use kubewright_example_postgres::agent::lease::Lease;
use kubewright_example_postgres::protocol::{
    BackupOrder, BackupReport, Order, Report, Role, State,
};
use kubewright_example_postgres::{Backup, PostgresCluster, ROLE, Restore};
use parking_lot::Mutex;
use tokio::time::Instant;

const SAMPLE: &str = include_str!("../config/samples/postgres_v1alpha1_postgrescluster.yaml");

/// All agents of a test.
#[derive(Clone)]
struct Agents {
    began: Instant,
    members: Arc<Mutex<BTreeMap<String, Member>>>,
    silent: Arc<Mutex<BTreeSet<String>>>,
    /// What the agent of the backups was ordered last.
    backup: Arc<Mutex<Option<BackupOrder>>>,
    /// The arguments of each attempt to restore. The first two fail.
    restores: Arc<Mutex<Vec<Vec<String>>>>,
}

#[derive(Default)]
struct Member {
    lease: Lease,
    order: Option<Order>,
    has_data: bool,
    nonce: u64,
}

impl Agents {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            members: Arc::default(),
            silent: Arc::default(),
            backup: Arc::default(),
            restores: Arc::default(),
        }
    }

    /// Who may take writes at this moment.
    fn primaries(&self) -> Vec<String> {
        let now = self.began.elapsed();
        let members = self.members.lock();
        let holds = members.iter().filter(|(_, member)| member.lease.holds(now));
        holds.map(|(name, _)| name.clone()).collect()
    }

    fn report(&self, name: &str) -> Report {
        let now = self.began.elapsed();
        let mut members = self.members.lock();
        let cluster = |name: &str| name.rsplit_once('-').map(|(cluster, _)| cluster.to_owned());
        let holders = members.iter().filter(|(_, it)| it.lease.holds(now));
        let holders = holders.filter(|(it, _)| cluster(it) == cluster(name));
        let holders: Vec<String> = holders.map(|(name, _)| name.clone()).collect();
        assert!(holders.len() <= 1, "two take writes: {holders:?}");
        let others: Vec<String> = members.keys().filter(|it| *it != name).cloned().collect();
        let member = members.entry(name.to_owned()).or_default();
        member.nonce += 1;
        member.lease.remember(now, member.nonce);
        let (term, fenced) = member.lease.record();
        let state = match member.order.as_ref().map(|order| &order.role) {
            Some(Role::Primary { .. }) if member.lease.holds(now) => State::Primary,
            Some(Role::Replica { .. }) => State::Replica,
            _ => State::Stopped,
        };
        Report {
            nonce: member.nonce,
            state,
            term,
            fenced,
            revision: member.lease.revision(),
            has_data: member.has_data,
            synchronous: others,
            ..Report::default()
        }
    }

    fn obey(&self, name: &str, order: Order) -> bool {
        let now = self.began.elapsed();
        let mut members = self.members.lock();
        let member = members.entry(name.to_owned()).or_default();
        let obeyed = member.lease.obey(now, &order).is_ok();
        if obeyed {
            member.has_data |= match &order.role {
                Role::Primary { bootstrap, .. } => *bootstrap,
                Role::Replica { .. } => true,
                Role::Stop => false,
            };
            member.order = Some(order);
        }
        obeyed
    }
}

impl Agents {
    fn keep_backups(&self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        if request.method() == Method::POST {
            *self.backup.lock() = Some(serde_json::from_slice(request.body()).ok()?);
        }
        let report = BackupReport {
            bases: vec![1_700_000_000_000_000],
            receives: true,
            problem: None,
        };
        let body = serde_json::to_vec(&report).ok()?;
        let response = Response::builder().header("content-type", "application/json");
        response.body(Bytes::from(body)).ok()
    }
}

impl Program for Agents {
    async fn run(&self, container: ContainerConfig) -> Exit {
        if container.args.first().is_some_and(|it| it == "restore") {
            let mut restores = self.restores.lock();
            restores.push(container.args.clone());
            return Exit::code(i32::from(restores.len() <= 2));
        }
        container.stopped().await;
        Exit::code(0)
    }

    async fn http(
        &self,
        container: ContainerId,
        _port: u16,
        request: Request<Bytes>,
    ) -> Option<Response<Bytes>> {
        let name = container.pod.name;
        if self.silent.lock().contains(&name) {
            return None;
        }
        if name.ends_with("-backup-0") {
            return self.keep_backups(&request);
        }
        if request.method() == Method::POST {
            let order = serde_json::from_slice(request.body()).ok()?;
            if !self.obey(&name, order) {
                let refused = Response::builder().status(409);
                return refused.body(Bytes::from_static(b"refused")).ok();
            }
        }
        let body = serde_json::to_vec(&self.report(&name)).ok()?;
        let response = Response::builder().header("content-type", "application/json");
        response.body(Bytes::from(body)).ok()
    }
}

async fn start() -> (World, Agents) {
    let world = World::builder()
        .role(include_str!("../rbac.yaml"))
        .without_webhooks()
        .time_limit(Duration::from_secs(1000))
        .nodes(3)
        .seed(1)
        .start()
        .await;
    let agents = Agents::new();
    let nodes = world.cluster.nodes();
    nodes.run_image("postgres-agent:*", agents.clone());
    let sample: PostgresCluster = serde_saphyr::from_str(SAMPLE).expect("a sample");
    world.client.create(&sample).await.expect("it is created");
    (world, agents)
}

fn key() -> Key {
    Key::new("default", "ledger")
}

async fn change(world: &World, change: impl FnOnce(&mut PostgresCluster)) {
    let live = world.client.live().get::<PostgresCluster>(&key()).await;
    let live = live.expect("the server answers").expect("it is there");
    let changed = world.client.modify(&live, change).await;
    changed.expect("it is changed");
}

/// Waits until there is a ready primary in this term, and all members are up.
async fn until(world: &World, term: i64) -> PostgresCluster {
    until_as(world, &key(), term).await
}

async fn until_as(world: &World, key: &Key, term: i64) -> PostgresCluster {
    let is_there = |cluster: Option<&PostgresCluster>| {
        let status = cluster.and_then(|cluster| cluster.status.as_ref());
        status.is_some_and(|status| {
            status.term == term
                && conditions::is_true(&status.conditions, "Ready")
                && status.synchronous.len() == 1
        })
    };
    let cluster = world.until(key, is_there).await;
    cluster.expect("it is there")
}

/// Prefers a member, and waits until it is primary in this term.
async fn switch_over(world: &World, member: &str, term: i64) {
    change(world, |it| it.spec.primary = Some(member.to_owned())).await;
    let began = Instant::now();
    let cluster = until(world, term).await;
    let status = cluster.status.expect("a status");
    assert_eq!(status.primary.as_deref(), Some(member));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?}");
}

async fn role(world: &World, member: &str) -> String {
    let key = Key::new("default", member);
    let pod = world.client.live().get::<Pod>(&key).await;
    let pod = pod.expect("the server answers").expect("it is there");
    pod.labels().get(ROLE).cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn members_come_up_and_nothing_is_written_when_nothing_changes() {
    let (world, agents) = start().await;
    let cluster = until(&world, 1).await;
    assert_eq!(agents.primaries(), ["ledger-0"]);
    let complete = |cluster: Option<&PostgresCluster>| {
        let status = cluster.and_then(|cluster| cluster.status.as_ref());
        status.is_some_and(|status| conditions::is_true(&status.conditions, "Complete"))
    };
    world.until(&key(), complete).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(role(&world, "ledger-0").await, "primary");
    assert_eq!(role(&world, "ledger-1").await, "replica");
    drop(cluster);
    let version = async || {
        let live = world.client.live().get::<PostgresCluster>(&key()).await;
        live.expect("the server answers")
            .expect("it is there")
            .resource_version()
    };
    let before = version().await;
    let mark = world.mark();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(version().await, before, "the status is written again");
    // Leases are renewed through the proxy to the pods; nothing that is stored changes.
    let writes = world.writes_since(mark);
    let stored: Vec<String> = writes
        .iter()
        .map(|it| format!("{it:?}"))
        .filter(|it| !it.contains("/proxy/"))
        .collect();
    assert!(stored.is_empty(), "{stored:#?}");
    assert_eq!(agents.primaries(), ["ledger-0"], "the lease is kept");
}

#[tokio::test(start_paused = true)]
async fn lost_primary_is_fenced_before_another_one_takes_over() {
    let (world, agents) = start().await;
    let cluster = until(&world, 1).await;
    let synchronous = cluster.status.expect("a status").synchronous;
    agents.silent.lock().insert("ledger-0".to_owned());
    let cluster = until(&world, 2).await;
    // Only who has every commit takes over.
    let primary = cluster
        .status
        .expect("a status")
        .primary
        .expect("a primary");
    assert_eq!(vec![primary.clone()], synchronous);
    assert_eq!(agents.primaries(), vec![primary.clone()]);
    world.until_event("Fencing").await;

    // The old one comes back and follows.
    agents.silent.lock().clear();
    let follows = |cluster: Option<&PostgresCluster>| {
        let status = cluster.and_then(|cluster| cluster.status.as_ref());
        status.is_some_and(|status| conditions::is_true(&status.conditions, "Complete"))
    };
    world.until(&key(), follows).await;
    assert_eq!(agents.primaries(), vec![primary.clone()]);

    // Somebody else is preferred: a switch-over, in which the old one says that it stopped.
    let live = world.client.live().get::<PostgresCluster>(&key()).await;
    let live = live.expect("the server answers").expect("it is there");
    let status = live.status.expect("a status");
    let next = status.synchronous.first().expect("a replica").clone();
    for (term, member) in [(3, &next), (4, &primary), (5, &next)] {
        switch_over(&world, member, term).await;
    }
    world
        .until_some("the Service leads to the new primary", async || {
            (role(&world, &next).await == "primary").then_some(())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn backups_follow_the_primary_and_another_cluster_starts_with_them() {
    let (world, agents) = start().await;
    until(&world, 1).await;
    let address = async |member: &str| {
        let key = Key::new("default", member);
        let pod = world.client.live().get::<Pod>(&key).await;
        let pod = pod.expect("the server answers").expect("it is there");
        pod.status.and_then(|status| status.pod_ip)
    };
    let backup = Backup {
        interval_seconds: Some(60),
        keep: None,
        storage: None,
    };
    change(&world, |it| it.spec.backup = Some(backup)).await;
    let receives = |cluster: Option<&PostgresCluster>| {
        let status = cluster.and_then(|it| it.status.as_ref()?.backup.as_ref());
        status.is_some_and(|backup| backup.receives && backup.bases.len() == 1)
    };
    world.until(&key(), receives).await;
    let order = agents.backup.lock().clone().expect("an order");
    assert_eq!(Some(order.primary), address("ledger-0").await);
    assert_eq!((order.interval_seconds, order.keep), (60, 3));

    agents.silent.lock().insert("ledger-0".to_owned());
    let primary = until(&world, 2).await.status.and_then(|it| it.primary);
    let new = address(&primary.expect("a primary"))
        .await
        .expect("an address");
    let follows = async || {
        let order = agents.backup.lock().clone()?;
        (order.primary == new).then_some(())
    };
    world.until_some("backups follow", follows).await;

    let mut again: PostgresCluster = serde_saphyr::from_str(SAMPLE).expect("a sample");
    again.metadata.name = Some("again".to_owned());
    again.spec.restore = Some(Restore {
        claim_name: "ledger-backup".to_owned(),
        time: Some(MicroTime("2026-01-02T03:04:05Z".parse().expect("a time"))),
    });
    world.client.create(&again).await.expect("it is created");
    until_as(&world, &Key::new("default", "again"), 1).await;
    let restores = agents.restores.lock().clone();
    assert_eq!(restores.len(), 3, "two attempts fail: {restores:?}");
    assert!(
        restores[2].contains(&"--time=2026-01-02T03:04:05Z".to_owned()),
        "{restores:?}"
    );

    change(&world, |it| it.spec.backup = None).await;
    let pod = Key::new("default", "ledger-backup-0");
    world.until(&pod, |pod: Option<&Pod>| pod.is_none()).await;
    let claim = Key::new("default", "ledger-backup");
    let claim = world
        .client
        .live()
        .get::<PersistentVolumeClaim>(&claim)
        .await;
    assert!(claim.expect("the server answers").is_some(), "backups stay");
    world.assert_exact_role();
}

#[tokio::test(start_paused = true)]
async fn operator_that_is_away_costs_the_primary_its_lease_and_nothing_else() {
    let (world, agents) = start().await;
    until(&world, 1).await;
    world.kill_operator().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        agents.primaries(),
        Vec::<String>::new(),
        "it is fenced by itself"
    );
    world.start_operator().await.expect("it starts");
    world
        .until_some("the same primary again", async || {
            (agents.primaries() == ["ledger-0"]).then_some(())
        })
        .await;
}
