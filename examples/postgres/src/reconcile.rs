//! The reconciler: keeps the objects, asks the members, has the plan decide, and does one step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Secret, Service};
use kube::ResourceExt;
use kubewright::prelude::*;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::PostgresCluster;
use crate::plan::{Record, Step, View, Wanted, decide};
use crate::protocol::{Report, State};
use crate::{backup, desired, members, report, restore};

/// The characters of a password.
const ALPHABET: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// How often a restore is looked at, besides when its pod changes.
const RESTORING: Duration = Duration::from_secs(5);

/// Keeps PostgresClusters.
#[derive(Debug, Default)]
pub struct PostgresClusters {
    /// Since when this process has known something that the plan waits for. Forgotten with the process, which makes the next one
    /// wait anew: time of another process's clock is never trusted.
    since: Mutex<BTreeMap<Key, Since>>,
}

/// Since when something has been so.
#[derive(Debug, Clone, Copy, Default)]
struct Since {
    /// The term that ends, and when this was first known.
    fencing: Option<(u64, Instant)>,
    /// When the primary was first seen out of order.
    broken: Option<Instant>,
}

/// The controller of PostgresClusters.
#[kubewright::controller]
pub fn controller() -> Controller {
    Controller::of::<PostgresCluster>("postgres")
        .owns::<StatefulSet>()
        .owns::<Service>()
        .owns::<Secret>()
        .owns::<Pod>()
        .reconciler(PostgresClusters::default())
}

#[kubewright::rbac(
    groups = "",
    resources = "pods",
    verbs = "list;watch;create;patch;delete"
)]
#[kubewright::rbac(
    groups = "",
    resources = "persistentvolumeclaims",
    verbs = "list;watch;create;patch"
)]
#[kubewright::rbac(groups = "", resources = "pods/proxy", verbs = "get;create")]
#[kubewright::rbac(
    groups = "postgres.kubewright.dev",
    resources = "postgresclusters",
    verbs = "get"
)]
impl Reconciler<PostgresCluster> for PostgresClusters {
    async fn reconcile(&self, cluster: Arc<PostgresCluster>, cx: &Context) -> Result<Outcome> {
        if cluster.metadata.deletion_timestamp.is_some() {
            self.since.lock().remove(cx.key());
            return Ok(Outcome::done());
        }
        keep_password(&cluster, &cluster.name_any(), cx).await?;
        let initialized = cluster.status.as_ref().is_some_and(|it| it.initialized);
        if let Some(restore) = cluster.spec.restore.as_ref().filter(|_| !initialized)
            && !restore::is_done(&cluster, restore, cx).await?
        {
            return Ok(Outcome::requeue_after(RESTORING));
        }
        keep_objects(&cluster, cx).await?;
        let seen = ask(&cluster, cx).await?;
        // After the nonces and from the server: a lease is granted on a record that was in force when its nonce existed already.
        let Some(mut cluster) = cx.client().live().get::<PostgresCluster>(cx.key()).await? else {
            return Ok(Outcome::done());
        };
        let record = cluster.status.clone().unwrap_or_default().record();
        let view = self.view(&record, seen, cx);
        match decide(&record, &wanted(&cluster), &view) {
            Step::Record(new) => {
                report::record(&mut cluster, &record, new, cx).await?;
                self.note_fencing(&cluster, cx);
                Ok(Outcome::requeue_after(Duration::from_millis(1)))
            }
            Step::Order(orders) => {
                let sent = orders.iter().map(|(name, order)| async move {
                    members::order(&cx.key().sibling(name), order, cx).await
                });
                join_all(sent).await;
                let primary = record.primary.as_ref().and_then(|it| view.hosts.get(it));
                let backup = backup::keep(&cluster, primary, cx).await?;
                let names = members_of(&cluster);
                report::members(&mut cluster, &names, &view, backup, cx).await?;
                label(&record, &view, cx).await?;
                Ok(Outcome::requeue_after(cluster.spec.lease() / 5))
            }
        }
    }
}

impl PostgresClusters {
    /// What is seen, with how long it has been so.
    fn view(&self, record: &Record, seen: Seen, cx: &Context) -> View {
        let now = Instant::now();
        let primary = record.primary.as_ref().and_then(|it| seen.reports.get(it));
        let is_up = primary.is_some_and(|it| it.state == State::Primary && it.term == record.term);
        let mut all = self.since.lock();
        let since = all.entry(cx.key().clone()).or_default();
        since.broken = (!is_up).then(|| since.broken.unwrap_or(now));
        let known = since.fencing.filter(|(term, _)| *term == record.term);
        since.fencing = record.fencing.then(|| known.unwrap_or((record.term, now)));
        View {
            reports: seen.reports,
            hosts: seen.hosts,
            fencing_for: since.fencing.map_or(Duration::ZERO, |(_, at)| now - at),
            broken_for: since.broken.map_or(Duration::ZERO, |at| now - at),
        }
    }

    /// The wait of a fencing begins when it is on record, not before.
    fn note_fencing(&self, cluster: &PostgresCluster, cx: &Context) {
        let status = cluster.status.clone().unwrap_or_default();
        if status.fencing {
            let term = status.record().term;
            let mut all = self.since.lock();
            let since = all.entry(cx.key().clone()).or_default();
            let known = since.fencing.filter(|(known, _)| *known == term);
            since.fencing = Some(known.unwrap_or((term, Instant::now())));
        }
    }
}

fn members_of(cluster: &PostgresCluster) -> Vec<String> {
    let name = cluster.name_any();
    (0..cluster.spec.members)
        .map(|member| format!("{name}-{member}"))
        .collect()
}

fn wanted(cluster: &PostgresCluster) -> Wanted {
    let spec = &cluster.spec;
    let synchronous = spec.synchronous_replicas.unwrap_or_default();
    Wanted {
        members: members_of(cluster),
        preferred: spec.primary.clone(),
        synchronous: usize::try_from(synchronous).unwrap_or_default(),
        lease: spec.lease(),
        patience: spec.patience(),
        parameters: spec.parameters.clone(),
    }
}

/// The Services and the pods.
async fn keep_objects(cluster: &PostgresCluster, cx: &Context) -> Result {
    let name = cluster.name_any();
    let (client, key) = (cx.client(), cx.key().clone());
    let fill = |it: &mut Service| desired::members_service(&name, it);
    client.apply_owned(cluster, &key, fill).await?;
    for role in ["primary", "replica"] {
        let key = cx.key().sibling(&format!("{name}-{role}"));
        let fill = |it: &mut Service| desired::role_service(&name, role, it);
        client.apply_owned(cluster, &key, fill).await?;
    }
    let fill = |it: &mut StatefulSet| desired::stateful_set(&name, &cluster.spec, it);
    client.apply_owned(cluster, &key, fill).await?;
    Ok(())
}

/// Makes a password once. It is never changed here: databases would not follow.
async fn keep_password(cluster: &PostgresCluster, name: &str, cx: &Context) -> Result {
    let key = cx.key().sibling(&desired::secret_name(name));
    let written = cx.client().create_or_update(&key, |secret: &mut Secret| {
        set_controller_reference(cluster, secret)?;
        let data = secret.data.get_or_insert_default();
        data.entry("password".to_owned())
            .or_insert_with(|| ByteString(password(cx)));
        Ok(())
    });
    written.await?;
    Ok(())
}

fn password(cx: &Context) -> Vec<u8> {
    let letter = |_| {
        let index = cx.environment().below(ALPHABET.len() as u64);
        ALPHABET[usize::try_from(index).unwrap_or_default()]
    };
    (0..32).map(letter).collect()
}

/// What members say, and where they are.
#[derive(Debug, Default)]
struct Seen {
    reports: BTreeMap<String, Report>,
    hosts: BTreeMap<String, String>,
}

/// Asks all members at once.
async fn ask(cluster: &PostgresCluster, cx: &Context) -> Result<Seen> {
    let mut seen = Seen::default();
    for name in members_of(cluster) {
        let pod = cx.client().get::<Pod>(&cx.key().sibling(&name)).await?;
        if let Some(host) = pod.as_deref().and_then(address) {
            seen.hosts.insert(name, host);
        }
    }
    let asked = seen.hosts.keys().map(|name| async move {
        let report = members::report(&cx.key().sibling(name), cx).await?;
        Some((name.clone(), report))
    });
    seen.reports = join_all(asked).await.into_iter().flatten().collect();
    Ok(seen)
}

/// The address of a pod that runs.
fn address(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let is_running = status.phase.as_deref() == Some("Running");
    status.pod_ip.clone().filter(|_| is_running)
}

/// Labels the pods by their roles, for the Services. Nothing depends on it but which way clients come: a member that may not take
/// writes does not, whatever its label says.
async fn label(record: &Record, view: &View, cx: &Context) -> Result {
    for (name, report) in &view.reports {
        let role = match report.state {
            State::Primary if record.primary.as_ref() == Some(name) => "primary",
            State::Replica => "replica",
            _ => "none",
        };
        let Some(pod) = cx.client().get::<Pod>(&cx.key().sibling(name)).await? else {
            continue;
        };
        if pod.labels().get(desired::ROLE).map(String::as_str) != Some(role) {
            let set = |pod: &mut Pod| {
                let labels = pod.labels_mut();
                labels.insert(desired::ROLE.to_owned(), role.to_owned());
            };
            cx.client()
                .modify(&pod, set)
                .await
                .map(drop)
                .ignore_not_found()?;
        }
    }
    Ok(())
}
