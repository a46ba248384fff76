//! Starts members: their claims, their certificates, their pods; and puts a snapshot into the first one.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kubewright::prelude::*;

use crate::api::{EtcdCluster, Restore, Tls};
use crate::certificates;
use crate::names::{Names, RESTORED};
use crate::objects::{self, MemberPod};
use crate::observe::member_id;
use crate::plan::pod_version;
use crate::reconcile::Shell;

/// Whether a member was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    /// Its pod is made.
    Now,
    /// A snapshot has to be put into its claim first.
    Later,
}

/// Starts the first member of a cluster. Caches may be behind, and a second first member would be a second cluster, so the
/// server itself is asked.
pub(crate) async fn bootstrap(shell: &Shell<'_>, name: &str) -> Result<Started> {
    let (client, names) = (shell.cx.client(), Names::of(shell.cluster));
    let present = client.live().get::<EtcdCluster>(shell.cx.key()).await?;
    let established = present.is_none_or(|present| {
        let same = present.metadata.uid == shell.cluster.metadata.uid;
        let status = present.status.as_ref();
        !same || status.is_some_and(|status| status.cluster_id.is_some())
    });
    let claims = client.live();
    let claims = claims
        .list::<PersistentVolumeClaim>(names.query("member"))
        .await?;
    if established || !claims.is_empty() {
        return Err(Error::msg(
            "the cache is behind: there is a cluster already",
        ));
    }
    start_member(shell, None, name).await
}

/// Makes what a member needs, in the order in which it is needed.
pub(crate) async fn start_member(
    shell: &Shell<'_>,
    id: Option<u64>,
    name: &str,
) -> Result<Started> {
    let Shell { cluster, cx, .. } = *shell;
    let claim = ensure_claim(shell, id, name).await?;
    if cluster.spec.tls == Tls::Enabled {
        certificates::ensure(cluster, &[name.to_owned()], cx).await?;
    }
    if let Some(restore) = &cluster.spec.restore
        && !shell.seen.observed.established
        && !is_restored(shell, name, &claim, restore).await?
    {
        return Ok(Started::Later);
    }
    let members = shell.seen.observed.quorum.iter();
    let members = members.flat_map(|quorum| &quorum.members);
    let mut peers: Vec<String> = members.map(|member| member.name.clone()).collect();
    if peers.is_empty() {
        peers.push(name.to_owned());
    }
    peers.sort();
    let member = MemberPod {
        name,
        id,
        version: pod_version(shell.wanted, &shell.seen.observed),
        peers,
    };
    let mut pod = objects::pod(cluster, &member)?;
    own(cluster, &mut pod)?;
    cx.client().create(&pod).await?;
    let message = format!("started the pod of {name}");
    cx.event(cluster, EventKind::Normal, "MemberStarted", message);
    Ok(Started::Now)
}

/// The claim of a member. One that was made for another member of the same name is left alone, and that is an error.
async fn ensure_claim(
    shell: &Shell<'_>,
    id: Option<u64>,
    name: &str,
) -> Result<PersistentVolumeClaim> {
    if let Some(claim) = shell.seen.claims.get(name) {
        if member_id(&**claim) != id {
            return Err(Error::msg(
                "the claim belongs to another member of this name",
            ));
        }
        return Ok((**claim).clone());
    }
    let mut claim = objects::claim(shell.cluster, name, id)?;
    own(shell.cluster, &mut claim)?;
    Ok(shell.cx.client().create(&claim).await?)
}

fn own<K>(cluster: &EtcdCluster, object: &mut K) -> Result
where
    K: kube::Resource<DynamicType = ()>,
{
    object.meta_mut().namespace = cluster.namespace();
    set_controller_reference(cluster, object)?;
    Ok(())
}

/// Whether the snapshot is in the claim of the first member. Puts it there, one attempt after the other, each into a new claim:
/// half of a snapshot is worse than none.
async fn is_restored(
    shell: &Shell<'_>,
    name: &str,
    claim: &PersistentVolumeClaim,
    restore: &Restore,
) -> Result<bool> {
    let Shell { cluster, cx, .. } = *shell;
    let pod = cx.key().sibling(&Names::of(cluster).restore_pod());
    let pod = cx.client().get::<Pod>(&pod).await?;
    if claim.annotations().contains_key(RESTORED) {
        if let Some(pod) = pod {
            let deleted = cx.client().delete(&*pod, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        return Ok(true);
    }
    let Some(pod) = pod else {
        let version = shell.wanted.version;
        let mut pod = objects::restore_pod(cluster, version, name, restore)?;
        own(cluster, &mut pod)?;
        cx.client().create(&pod).await?;
        let message = format!("restoring {} from {}", restore.snapshot, restore.claim_name);
        cx.event(cluster, EventKind::Normal, "Restoring", message);
        return Ok(false);
    };
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let image = container.and_then(|it| it.image.clone());
    match phase {
        // Nothing was done yet, and the spec has changed since.
        None | Some("Pending") if image != Some(objects::image(cluster, shell.wanted.version)) => {
            let deleted = cx.client().delete(&*pod, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        Some("Succeeded") => {
            let file = restore.snapshot.clone();
            let note = |claim: &mut PersistentVolumeClaim| {
                claim.annotations_mut().insert(RESTORED.to_owned(), file);
            };
            cx.client().modify(claim, note).await?;
            let message = format!("restored {}", restore.snapshot);
            cx.event(cluster, EventKind::Normal, "Restored", message);
        }
        Some("Failed") => {
            let message = format!("cannot restore {}; trying again", restore.snapshot);
            cx.event(cluster, EventKind::Warning, "RestoreFailed", message);
            let deleted = cx.client().delete(&*pod, Delete::background()).await;
            deleted.ignore_not_found()?;
            let deleted = cx.client().delete(claim, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        _ => {}
    }
    Ok(false)
}
