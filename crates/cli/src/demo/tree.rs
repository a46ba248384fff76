//! The objects of a namespace as a tree of owners, each with its state in a few words.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_demo::CloudManager;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{Client, ClientError, Query};

/// An object, at its place in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) depth: usize,
    /// As in `Deployment/web`.
    pub(super) name: String,
    pub(super) state: String,
    pub(super) mood: Mood,
    /// The revision of the object.
    pub(super) revision: u64,
}

/// Whether a state is the one that is hoped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Good,
    Waiting,
    Plain,
}

/// An object, before it has its place.
#[derive(Debug, Clone)]
struct Thing {
    uid: String,
    owner: Option<String>,
    name: String,
    state: String,
    mood: Mood,
    revision: u64,
}

/// The revision of an object; 0 where the server gave none.
pub(super) fn revision(meta: &ObjectMeta) -> u64 {
    let version = meta.resource_version.as_deref().unwrap_or_default();
    version.parse().unwrap_or(0)
}

/// Looks at the namespace `default`, in the cache.
pub(super) async fn look(client: &Client) -> Result<Vec<Line>, ClientError> {
    let mut things = Vec::new();
    add(client, &mut things, |m: &CloudManager| {
        let phase = m.status.as_ref().and_then(|status| status.phase);
        let phase = phase.map_or("new", |phase| phase.as_str());
        (phase.to_owned(), mood(phase == "ready"))
    })
    .await?;
    add(client, &mut things, |d: &Deployment| {
        let ready = d.status.as_ref().and_then(|status| status.ready_replicas);
        replicas(ready, d.spec.replicas)
    })
    .await?;
    add(client, &mut things, |r: &ReplicaSet| {
        let ready = r.status.as_ref().and_then(|status| status.ready_replicas);
        replicas(ready, r.spec.replicas)
    })
    .await?;
    add(client, &mut things, |s: &StatefulSet| {
        let ready = s.status.as_ref().and_then(|status| status.ready_replicas);
        replicas(ready, s.spec.replicas)
    })
    .await?;
    add(client, &mut things, |_: &Secret| {
        (String::new(), Mood::Plain)
    })
    .await?;
    add(client, &mut things, |c: &PersistentVolumeClaim| {
        let phase = c.status.as_ref().and_then(|status| status.phase.clone());
        let phase = phase.unwrap_or_default();
        let bound = phase == "Bound";
        (phase, mood(bound))
    })
    .await?;
    add(client, &mut things, pod_state).await?;
    Ok(arrange(things))
}

async fn add<K: TypedObject>(
    client: &Client,
    things: &mut Vec<Thing>,
    state: impl Fn(&K) -> (String, Mood),
) -> Result<(), ClientError> {
    let mut objects = client.list::<K>(Query::all().namespace("default")).await?;
    objects.sort_by(|a, b| a.meta().name.cmp(&b.meta().name));
    for object in objects {
        let meta = object.meta();
        let owners = meta.owner_references.iter().flatten();
        let (state, mood) = state(&object);
        things.push(Thing {
            uid: meta.uid.clone().unwrap_or_default(),
            owner: owners.map(|owner| owner.uid.clone()).next(),
            name: format!(
                "{}/{}",
                K::kind(&()),
                meta.name.as_deref().unwrap_or_default()
            ),
            state,
            mood,
            revision: revision(meta),
        });
    }
    Ok(())
}

fn mood(good: bool) -> Mood {
    if good { Mood::Good } else { Mood::Waiting }
}

fn replicas(ready: Option<i32>, wanted: Option<i32>) -> (String, Mood) {
    let (ready, wanted) = (ready.unwrap_or(0), wanted.unwrap_or(1));
    (format!("{ready}/{wanted} ready"), mood(ready >= wanted))
}

fn pod_state(pod: &Pod) -> (String, Mood) {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ready = conditions
        .iter()
        .any(|c| c.type_ == "Ready" && c.status == "True");
    let phase = match (&pod.metadata.deletion_timestamp, ready) {
        (Some(_), _) => "Terminating".to_owned(),
        (None, true) => "Running, ready".to_owned(),
        (None, false) => status.phase.unwrap_or_else(|| "Pending".to_owned()),
    };
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let place = node.map(|node| format!(" on {node}")).unwrap_or_default();
    (format!("{phase}{place}"), mood(ready))
}

/// Puts each object below its owner. Only what hangs on a CloudManager is shown, and claims, which have no owner.
fn arrange(things: Vec<Thing>) -> Vec<Line> {
    let mut lines = Vec::new();
    let is_root = |thing: &&Thing| {
        thing.name.starts_with("CloudManager/") || thing.name.starts_with("PersistentVolumeClaim/")
    };
    for root in things.iter().filter(is_root) {
        place(root, 0, &things, &mut lines);
    }
    lines
}

fn place(thing: &Thing, depth: usize, things: &[Thing], lines: &mut Vec<Line>) {
    // Old ReplicaSets with nothing in them only tell of the past.
    if thing.name.starts_with("ReplicaSet/") && thing.state == "0/0 ready" {
        return;
    }
    lines.push(Line {
        depth,
        name: thing.name.clone(),
        state: thing.state.clone(),
        mood: thing.mood,
        revision: thing.revision,
    });
    // Owners cannot go in circles here: each level is of another kind.
    let is_child = |other: &&Thing| other.owner.as_ref() == Some(&thing.uid) && depth < 4;
    for child in things.iter().filter(is_child) {
        place(child, depth + 1, things, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing(uid: &str, owner: Option<&str>, name: &str, state: &str) -> Thing {
        Thing {
            uid: uid.to_owned(),
            owner: owner.map(str::to_owned),
            name: name.to_owned(),
            state: state.to_owned(),
            mood: Mood::Plain,
            revision: 0,
        }
    }

    #[test]
    fn objects_hang_below_their_owners() {
        let lines = arrange(vec![
            thing("1", None, "CloudManager/c", "front"),
            thing("4", Some("3"), "Pod/p", "Running"),
            thing("2", Some("1"), "Deployment/d", "0/1 ready"),
            thing("3", Some("2"), "ReplicaSet/r", "0/1 ready"),
            thing("5", Some("2"), "ReplicaSet/old", "0/0 ready"),
            thing("6", None, "Secret/other", ""),
        ]);
        let shown: Vec<(usize, &str)> = lines.iter().map(|l| (l.depth, l.name.as_str())).collect();
        let expected = [
            (0, "CloudManager/c"),
            (1, "Deployment/d"),
            (2, "ReplicaSet/r"),
            (3, "Pod/p"),
        ];
        assert_eq!(shown, expected);
    }
}
