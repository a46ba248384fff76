//! Resource quotas: what a namespace uses of what it may, counted anew whenever something changes.
//!
//! The server refuses what would exceed a quota; this controller gives back what is no longer used and counts what was
//! there before the quota.

mod pods;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota, Secret, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use kubewright_cache::{Event, NAMESPACE_INDEX};
use kubewright_runtime::{
    Client, Context, Controller, Error, Key, Outcome, Predicate, Query, Reconciler, Watch,
};

use crate::kinds::{self, Reach};
use usage::{Counted, Tally, counted};

/// How often a quota is counted whose objects are not all watched.
const RECOUNT: Duration = Duration::from_secs(300);

/// Keeps the status of quotas.
pub(crate) fn controller() -> Controller {
    Controller::of::<ResourceQuota>("resourcequota")
        .watches(Watch::of::<Pod>().map(quotas_of))
        .watches(Watch::of::<Service>().map(quotas_of))
        .watches(Watch::of::<PersistentVolumeClaim>().map(quotas_of))
        .watches(existence::<ConfigMap>())
        .watches(existence::<Secret>())
        .watches(existence::<ReplicationController>())
        .watches(existence::<Deployment>())
        .watches(existence::<ReplicaSet>())
        .watches(existence::<StatefulSet>())
        .watches(existence::<DaemonSet>())
        .watches(existence::<Job>())
        .watches(existence::<CronJob>())
        .reconciler(Quotas)
}

/// Objects that count by being there.
fn existence<K: Resource<DynamicType = ()>>() -> Watch<PartialObjectMeta<DynamicObject>> {
    let changes = |event: &Event<_>| !matches!(event, Event::Updated { .. });
    Watch::metadata(&ApiResource::erase::<K>(&()))
        .when(Predicate::new(changes))
        .map(quotas_of)
}

/// The quotas of the namespace of an object.
fn quotas_of<K: Resource>(object: &K, client: &Client) -> Vec<Key> {
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    let quotas = client.reader::<ResourceQuota>();
    quotas
        .keys_by_index(NAMESPACE_INDEX, namespace)
        .unwrap_or_default()
}

struct Quotas;

impl Reconciler<ResourceQuota> for Quotas {
    async fn reconcile(&self, quota: Arc<ResourceQuota>, cx: &Context) -> Result<Outcome, Error> {
        let hard = quota
            .spec
            .as_ref()
            .and_then(|spec| spec.hard.clone())
            .unwrap_or_default();
        let (tally, watched) = count(&quota, &hard, cx).await?;
        let used: BTreeMap<String, Text> = hard
            .keys()
            .map(|name| (name.clone(), Text(tally.get(name).to_string())))
            .collect();
        let mut counted = (*quota).clone();
        let status = counted.status.get_or_insert_default();
        status.hard = Some(hard);
        status.used = Some(used);
        if counted.status != quota.status {
            // The server adds to the same numbers: whoever was faster is not overwritten.
            cx.client().update_status(&counted).await?;
        }
        Ok(match watched {
            Watched::All => Outcome::done(),
            Watched::Some => Outcome::requeue_after(RECOUNT),
        })
    }
}

/// Whether every change of what was counted leads to another count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    All,
    Some,
}

/// What a namespace uses, as far as a quota is about it.
async fn count(
    quota: &ResourceQuota,
    hard: &BTreeMap<String, Text>,
    cx: &Context,
) -> Result<(Tally, Watched), Error> {
    let (client, here) = (cx.client(), cx.key().namespace().unwrap_or_default());
    let all = || Query::all().namespace(here);
    let (mut tally, mut watched) = (Tally::default(), Watched::All);
    let mut kinds = None;
    let named: std::collections::BTreeSet<Counted> =
        hard.keys().map(|name| counted(name)).collect();
    for what in named {
        match what {
            Counted::Pods => {
                for pod in client.list::<Pod>(all()).await? {
                    if pods::in_scope(quota, &pod) {
                        tally.add_all(&pods::usage(&pod, cx.now()));
                    }
                }
            }
            // Scopes are about pods; a quota that has some counts nothing else.
            _ if pods::has_scopes(quota) => {}
            Counted::Services => {
                for service in client.list::<Service>(all()).await? {
                    tally.add_all(&usage::of_service(&service));
                }
            }
            Counted::Claims => {
                for claim in client.list::<PersistentVolumeClaim>(all()).await? {
                    tally.add_all(&usage::of_claim(&claim));
                }
            }
            Counted::Objects {
                name,
                plural,
                group,
            } => {
                let kinds = match &mut kinds {
                    Some(kinds) => kinds,
                    None => kinds.insert(kinds::discover(client.kube()).await?),
                };
                let kind = kinds.iter().find(|kind| kind.is(&group, &plural));
                let Some(kind) = kind.filter(|kind| kind.reach == Reach::Namespaced) else {
                    watched = Watched::Some;
                    continue;
                };
                if !matches!(&*group, "" | "apps" | "batch") {
                    watched = Watched::Some;
                }
                let objects = client.metadata(&kind.resource).entries(all()).await?;
                tally.count(&name, objects.len());
            }
        }
    }
    Ok((tally, watched))
}
