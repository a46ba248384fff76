//! The namespace controller: a namespace that is deleted takes its content with it, pods first.
//!
//! Pods go before everything else, so that what still runs does not see its secrets and policies vanish. Whatever keeps
//! the namespace is reported in its conditions, in the words of Kubernetes.

mod conditions;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::core::{DynamicObject, PartialObjectMeta};
use kubewright_cache::Event;
use kubewright_runtime::{
    Client, Context, Controller, Delete, Error, Key, Outcome, Predicate, Query, Reconciler, Watch,
};

use crate::kinds::{self, Kind, Reach};
use crate::writes::report;
use conditions::{Findings, set_conditions};

/// The finalizer that is this controller's.
const KUBERNETES: &str = "kubernetes";
/// How long finalizers of others are expected to take.
const FINALIZERS: Duration = Duration::from_secs(15);

/// Deletes the content of namespaces that are going.
pub(crate) fn controller() -> Controller {
    Controller::of::<Namespace>("namespace")
        .watches(
            // The rest of the content waits for the pods, so their end is worth hearing of.
            Watch::of::<Pod>()
                .when(Predicate::new(|event| {
                    matches!(event, Event::Deleted { .. })
                }))
                .map(|pod: &Pod, _| {
                    pod.metadata
                        .namespace
                        .iter()
                        .map(|n| Key::cluster(n))
                        .collect()
                }),
        )
        .workers(5)
        .reconciler(Emptying)
}

struct Emptying;

impl Reconciler<Namespace> for Emptying {
    async fn reconcile(&self, namespace: Arc<Namespace>, cx: &Context) -> Result<Outcome, Error> {
        let Some(deleted_at) = &namespace.metadata.deletion_timestamp else {
            return Ok(Outcome::done());
        };
        if !is_held(&namespace) {
            return Ok(Outcome::done());
        }
        let mut findings = Findings::default();
        let name = cx.key().name();
        let wait = empty(cx.client(), name, deleted_at.0, cx.now(), &mut findings).await;
        let mut reported = (*namespace).clone();
        set_conditions(&mut reported, &findings, cx.now());
        report(cx.client(), &*namespace, |namespace| *namespace = reported).await?;
        if findings.is_empty() {
            finalize(cx.client(), &namespace).await?;
            return Ok(Outcome::done());
        }
        match wait {
            Some(wait) => Ok(Outcome::requeue_after(wait / 2 + Duration::from_secs(1))),
            None => Err(Error::msg(format!(
                "the content of namespace {name} could not be deleted: {}",
                findings.errors().join(", ")
            ))),
        }
    }
}

/// Whether the namespace waits for this controller.
fn is_held(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|s| s.finalizers.as_ref());
    finalizers.is_some_and(|f| f.iter().any(|f| f == KUBERNETES))
}

/// Deletes what can be deleted and notes what is left. Gives the time to wait before looking again, or nothing when
/// something went wrong.
async fn empty(
    client: &Client,
    namespace: &str,
    deleted_at: Timestamp,
    now: Timestamp,
    findings: &mut Findings,
) -> Option<Duration> {
    let kinds = match kinds::discover(client.kube()).await {
        Ok(kinds) => kinds,
        Err(error) => {
            findings.discovery_failed(&error.to_string());
            return None;
        }
    };
    let deletable = |kind: &Kind| kind.reach == Reach::Namespaced && kind.can(&["list", "delete"]);
    let (pods, others): (Vec<Kind>, Vec<Kind>) = kinds
        .into_iter()
        .filter(deletable)
        .partition(|kind| kind.is("", "pods"));
    let mut wait = Duration::ZERO;
    for kind in &pods {
        let grace = grace_left(client, namespace, deleted_at, now).await;
        wait = wait.max(grace.unwrap_or_default());
        empty_kind(client, kind, namespace, findings).await;
    }
    if findings.remain() == 0 {
        for kind in &others {
            empty_kind(client, kind, namespace, findings).await;
        }
    }
    if findings.has_finalizers() {
        wait = wait.max(FINALIZERS);
    }
    findings.errors().is_empty().then_some(wait)
}

/// How long pods may still take to end, at the most.
async fn grace_left(
    client: &Client,
    namespace: &str,
    deleted_at: Timestamp,
    now: Timestamp,
) -> Result<Duration, Error> {
    let pods: Vec<Pod> = client
        .live()
        .list(Query::all().namespace(namespace))
        .await?;
    let running = pods.iter().filter(|pod| {
        let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
        !matches!(phase, Some("Succeeded" | "Failed"))
    });
    let grace = running.filter_map(|p| p.spec.as_ref()?.termination_grace_period_seconds);
    let longest = Duration::from_secs(grace.max().unwrap_or(0).try_into().unwrap_or(0));
    let passed = Duration::try_from(now.duration_since(deleted_at)).unwrap_or_default();
    Ok(if passed >= longest {
        Duration::ZERO
    } else {
        longest
    })
}

/// Deletes the objects of one kind in a namespace and notes what is left.
async fn empty_kind(client: &Client, kind: &Kind, namespace: &str, findings: &mut Findings) {
    match try_empty_kind(client, kind, namespace).await {
        Ok(left) => findings.left(kind, &left),
        Err(error) => findings.failed(&error.report()),
    }
}

async fn try_empty_kind(
    client: &Client,
    kind: &Kind,
    namespace: &str,
) -> Result<Vec<PartialObjectMeta<DynamicObject>>, Error> {
    let objects = client.metadata(&kind.resource);
    let all = || Query::all().namespace(namespace);
    if kind.can(&["deletecollection"]) {
        objects.delete_all(all(), Delete::background()).await?;
        return Ok(objects.list_live(all()).await?);
    }
    for object in objects.list_live(all()).await? {
        match objects.delete(&object, Delete::background()).await {
            Ok(()) => {}
            // Gone, or another one of the name: the list that follows tells.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(objects.list_live(all()).await?)
}

/// Lets the namespace go.
async fn finalize(client: &Client, namespace: &Namespace) -> Result<(), Error> {
    let mut released = namespace.clone();
    // The conditions were just written; the finalizers have not changed by that.
    released.metadata.resource_version = None;
    if let Some(finalizers) = released.spec.as_mut().and_then(|s| s.finalizers.as_mut()) {
        finalizers.retain(|f| f != KUBERNETES);
    }
    let name = released.metadata.name.clone().unwrap_or_default();
    let objects = client.of::<Namespace>();
    let key = Key::cluster(&name);
    let answer: Result<Namespace, _> = objects
        .update_subresource(&key, "finalize", &released)
        .await;
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
