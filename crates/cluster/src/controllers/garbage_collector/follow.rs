//! Follows every kind that is served: those that appear later are taken up, those that vanish are forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_cache::{Event, Object, Registration, Scope, SharedInformer};
use kubewright_runtime::Error;
use tokio::sync::oneshot;

use super::live::{self, Kinds};
use super::{Collector, FIRST_STATE};
use crate::kinds::{self, Kind};

/// How soon a failed look for kinds is repeated.
const RETRY: Duration = Duration::from_secs(1);
/// How soon discovery is asked again for a kind that it should have, at first and at last.
const SOON: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_secs(5);

/// One kind that is followed. Dropping it ends that.
struct Followed {
    resource: ApiResource,
    registration: Registration,
    _informer: SharedInformer<PartialObjectMeta<DynamicObject>>,
}

/// Group, version and plural.
type Id = (String, String, String);
type All = BTreeMap<Id, Followed>;

/// Follows kinds until it is dropped. Says when the first state of the first ones is known.
///
/// Discovery is asked when a definition changes, and again until it has every kind that an established definition
/// promises (`garbagecollector.go: Sync` asks every 30 seconds for the same reason).
pub(super) async fn kinds(collector: Arc<Collector>, synced: oneshot::Sender<()>) {
    let definitions = collector.client.of::<CustomResourceDefinition>().informer();
    let listener = collector.clone();
    let _listening = definitions.add_handler(move |event: Event<CustomResourceDefinition>| {
        listener.definition_changed(&event);
    });
    let mut synced = Some(synced);
    let mut followed = All::new();
    let mut pause = SOON;
    loop {
        let missing = match update(&collector, &mut followed).await {
            Ok(missing) => missing,
            Err(error) => {
                let error = error.report();
                tracing::warn!(error, "the kinds of the cluster could not be listed");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        if let Some(synced) = synced.take() {
            first_state(&followed).await;
            let _ = synced.send(());
        }
        if missing.is_empty() {
            pause = SOON;
            collector.look_for_kinds.notified().await;
            continue;
        }
        tracing::debug!(
            ?missing,
            "discovery does not have all established definitions"
        );
        let _ = tokio::time::timeout(pause, collector.look_for_kinds.notified()).await;
        pause = (pause * 2).min(LATE);
    }
}

/// Brings what is followed into line with what is served. Gives the definitions whose kinds should be and are not.
async fn update(collector: &Arc<Collector>, followed: &mut All) -> Result<Vec<String>, Error> {
    let mut served = kinds::discover(collector.client.kube()).await?;
    let missing = collector.promises.lock().missing(&served);
    served.retain(|kind| kind.is_collectable() && !is_ignored(kind));
    let known = std::mem::replace(&mut *collector.kinds.write(), Arc::new(Kinds::new(&served)));
    let wanted: BTreeMap<_, _> = served.iter().map(|kind| (id(kind), kind)).collect();
    let unserved = |id: &&Id| !wanted.contains_key(*id);
    let unserved: Vec<Id> = followed.keys().filter(unserved).cloned().collect();
    let vanished: Vec<Followed> = unserved
        .iter()
        .filter_map(|id| followed.remove(id))
        .collect();
    for (id, kind) in wanted {
        if !followed.contains_key(&id)
            && let Some(new) = follow(collector, &kind.resource)
        {
            followed.insert(id, new);
        }
    }
    collector.client.factory().start();
    for gone in vanished {
        gone.registration.remove();
        forget(collector, &gone.resource);
    }
    let is_new = |group: &str, kind: &str| {
        let (kinds, group) = (collector.kinds.read().clone(), group);
        known.get(group, kind).is_none() && kinds.get(group, kind).is_some()
    };
    // Their owners could not be asked for until now.
    let doubtful = collector.graph.lock().with_unseen_owners(is_new);
    collector.add(doubtful);
    Ok(missing)
}

/// Events have no owners to speak of, and there are many.
fn is_ignored(kind: &Kind) -> bool {
    kind.is("", "events") || kind.is("events.k8s.io", "events")
}

fn id(kind: &Kind) -> Id {
    let r = &kind.resource;
    (r.group.clone(), r.version.clone(), r.plural.clone())
}

fn follow(collector: &Arc<Collector>, resource: &ApiResource) -> Option<Followed> {
    let informer = collector.client.factory().metadata(resource, Scope::all());
    let (weak, of) = (Arc::downgrade(collector), resource.clone());
    let handler = move |event: Event<PartialObjectMeta<DynamicObject>>| {
        if let Some(collector) = weak.upgrade() {
            hear(&collector, &of, &event);
        }
    };
    let registration = informer.add_handler(handler).ok()?;
    Some(Followed {
        resource: resource.clone(),
        registration,
        _informer: informer,
    })
}

fn hear(
    collector: &Collector,
    resource: &ApiResource,
    event: &Event<PartialObjectMeta<DynamicObject>>,
) {
    let work = match event {
        Event::Deleted { last, .. } => collector.graph.lock().remove(&(*last.uid()).into()),
        Event::Updated { old, new } if differ_in_version_alone(old.object(), new.object()) => {
            return;
        }
        Event::Updated { old, new } if old.uid() != new.uid() => {
            let mut work = collector.graph.lock().remove(&(*old.uid()).into());
            work.extend(observe(collector, resource, event));
            work
        }
        _ => observe(collector, resource, event),
    };
    collector.add(work);
}

/// Whether the metadata of two states of an object is the same but for the version: then the change was elsewhere, as
/// most changes are.
fn differ_in_version_alone(old: &Object, new: &Object) -> bool {
    let before = around_version(old);
    before.is_some() && before == around_version(new)
}

/// What stands before and after the version in an object.
fn around_version(object: &Object) -> Option<(&[u8], &[u8])> {
    let json = object.json();
    let version = format!(r#""resourceVersion":"{}""#, object.resource_version());
    let mut places = json.windows(version.len());
    let at = places.position(|place| place == version.as_bytes())?;
    Some((&json[..at], &json[at + version.len()..]))
}

fn observe(
    collector: &Collector,
    resource: &ApiResource,
    event: &Event<PartialObjectMeta<DynamicObject>>,
) -> Vec<super::Work> {
    let object = event.object().value();
    let node = object.and_then(|object| live::node(resource, &object.metadata));
    node.map_or_else(Vec::new, |node| collector.graph.lock().observe(node))
}

/// Forgets the objects of a kind, unless it is still served at another version.
fn forget(collector: &Collector, resource: &ApiResource) {
    let kinds = collector.kinds.read().clone();
    if kinds.get(&resource.group, &resource.kind).is_some() {
        return;
    }
    let gone = collector
        .graph
        .lock()
        .of_kind(&resource.group, &resource.kind);
    for uid in gone {
        let work = collector.graph.lock().remove(&uid);
        collector.add(work);
    }
}

/// Waits for the first state of all, as long as is reasonable.
async fn first_state(followed: &All) {
    let all = async {
        for kind in followed.values() {
            let _ = kind.registration.synced().await;
        }
    };
    let _ = tokio::time::timeout(FIRST_STATE, all).await;
}
