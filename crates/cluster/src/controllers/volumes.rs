//! Volumes: binds claims to volumes that fit, makes simulated ones for those that ask for them, and takes them back.
//!
//! [`plan`] says what is to be done about a claim or a volume, [`matching`] which volume a claim gets, [`binding`] how
//! the two are written; this file reads and writes. The storage class `standard` is made at start if it is missing,
//! so that claims work in a new cluster as they do on a real one. Its volumes are simulated: nothing is written anywhere.
//!
//! Guarantees
//! - A volume is never bound to two claims: it is written only in the state in which it was seen to be free.
//! - A claim that was bound once keeps its volume, or is `Lost`.

pub(crate) mod binding;
pub(crate) mod expansion;
pub(crate) mod matching;
pub(crate) mod objects;
mod plan;
pub(crate) mod protection;
mod provision;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kubewright_runtime::{
    Client, ClientError, Context, Controller, Delete, Error, EventKind, IgnoreNotFound, Key,
    Outcome, Query, Reconciler, Watch,
};

use self::objects::{
    BIND_COMPLETED, BY_PLACE, claim_of, class_named, class_of, free_of, has, is_bound, place_index,
    promised_to, volume_of, volume_phase,
};
use self::plan::{
    ClaimStep, Class, Note, Reclaim, Surroundings, VolumeStep, claim_step, volume_step,
};
pub(crate) use self::provision::standard_class;
use self::provision::{DEFAULT_CLASS, provision, set_pending};
use crate::writes::{replace, report};

/// Binds claims.
pub(crate) fn binder() -> Controller {
    let volumes = Watch::of::<PersistentVolume>().map(|volume, client| match claim_of(volume) {
        Some(key) => vec![key],
        // A volume that is free may be what somebody waits for, and one that is gone what somebody had.
        None => waiting(client),
    });
    let classes = Watch::of::<StorageClass>().map(|_, client| waiting(client));
    Controller::of::<PersistentVolumeClaim>("persistentvolume-binder")
        .watches(volumes)
        .watches(classes)
        .reconciler(Claims)
}

/// Keeps the phases of volumes, and takes those back whose claim is gone.
pub(crate) fn reclaimer() -> Controller {
    let claims = Watch::of::<PersistentVolumeClaim>().map(|claim, client| {
        // The one that it names, and those that name it.
        let mut volumes: Vec<Key> = volume_of(claim).map(Key::cluster).into_iter().collect();
        let key = Key::new(&claim.namespace().unwrap_or_default(), &claim.name_any());
        let promised = client
            .reader::<PersistentVolume>()
            .by_index(BY_PLACE, &promised_to(&key));
        let promised = promised.unwrap_or_default();
        volumes.extend(
            promised
                .iter()
                .map(|volume| Key::cluster(&volume.name_any())),
        );
        volumes.sort();
        volumes.dedup();
        volumes
    });
    Controller::of::<PersistentVolume>("persistentvolume-reclaimer")
        .watches(claims)
        .reconciler(Volumes)
}

/// The claims that are not bound.
fn waiting(client: &Client) -> Vec<Key> {
    let claims = client.reader::<PersistentVolumeClaim>().list();
    let unbound = claims.iter().filter(|claim| !is_bound(claim));
    unbound
        .map(|claim| Key::new(&claim.namespace().unwrap_or_default(), &claim.name_any()))
        .collect()
}

struct Claims;

impl Reconciler<PersistentVolumeClaim> for Claims {
    async fn reconcile(
        &self,
        claim: Arc<PersistentVolumeClaim>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let was_bound = has(&claim.metadata, BIND_COMPLETED);
        if claim.metadata.deletion_timestamp.is_some() && !was_bound {
            return Ok(Outcome::done());
        }
        let around = surroundings(&claim, cx).await?;
        match claim_step(&claim, &around) {
            ClaimStep::Wait(note) => {
                tell(cx, &claim, note);
                set_pending(&claim, cx).await?;
            }
            ClaimStep::Lose(note) => lose(&claim, note, cx).await?,
            ClaimStep::Refuse(note) => {
                let why = Error::msg(note.message.clone());
                tell(cx, &claim, Some(note));
                return Err(why);
            }
            ClaimStep::Bind(volume) => bind(&claim, &volume, cx).await?,
            ClaimStep::SetClass(name) => {
                let mut classed = (*claim).clone();
                classed.spec.get_or_insert_default().storage_class_name = Some(name);
                replace(cx.client(), &*claim, classed).await?;
            }
            // Rare, and large: it is not to make every other run large.
            ClaimStep::Provision(class) => {
                let made = Box::pin(provision(&claim, &class, cx)).await?;
                if let Some(volume) = made {
                    Box::pin(bind_latest(&volume, cx)).await?;
                }
            }
        }
        Ok(Outcome::done())
    }
}

fn tell(cx: &Context, claim: &PersistentVolumeClaim, note: Option<Note>) {
    let Some(Note {
        warning,
        reason,
        message,
    }) = note
    else {
        return;
    };
    let kind = if warning {
        EventKind::Warning
    } else {
        EventKind::Normal
    };
    cx.event(claim, kind, reason, message);
}

/// What has to be known about a claim. A bound one is looked at together with its volume alone.
async fn surroundings(
    claim: &PersistentVolumeClaim,
    cx: &Context,
) -> Result<Surroundings, ClientError> {
    let client = cx.client();
    if let Some(name) = volume_of(claim) {
        let key = Key::cluster(name);
        let mut named = client.get::<PersistentVolume>(&key).await?;
        if named.is_none() && has(&claim.metadata, BIND_COMPLETED) {
            // The cache may be behind: only what the server says is gone is lost.
            named = client.live().get(&key).await?.map(Arc::new);
        }
        return Ok(Surroundings {
            named,
            ..Surroundings::default()
        });
    }
    if has(&claim.metadata, BIND_COMPLETED) {
        return Ok(Surroundings::default());
    }
    // The first of many callers adds it; for the others it is there already.
    let _ = client.add_index::<PersistentVolume>(BY_PLACE, place_index());
    let mut volumes = Vec::new();
    for place in [free_of(class_of(claim)), promised_to(cx.key())] {
        let there = Query::all().index(BY_PLACE, place);
        volumes.extend(client.list::<PersistentVolume>(there).await?);
    }
    let class = class(claim, client).await?;
    Ok(Surroundings {
        named: None,
        volumes,
        class,
    })
}

async fn class(claim: &PersistentVolumeClaim, client: &Client) -> Result<Class, ClientError> {
    match class_named(claim) {
        Some("") => Ok(Class::None),
        Some(name) => {
            let class = client.get::<StorageClass>(&Key::cluster(name)).await?;
            Ok(class.map_or_else(|| Class::Missing(name.to_owned()), Class::Found))
        }
        None => {
            let classes = client.list::<StorageClass>(Query::all()).await?;
            Ok(default_class(&classes).map_or(Class::None, Class::Default))
        }
    }
}

/// The default class: of several the newest, then the first by name (`storage/util/helpers.go: GetDefaultClass`).
fn default_class(classes: &[Arc<StorageClass>]) -> Option<String> {
    let is_default = |class: &&Arc<StorageClass>| {
        class.annotations().get(DEFAULT_CLASS).map(String::as_str) == Some("true")
    };
    let mut defaults: Vec<_> = classes.iter().filter(is_default).collect();
    let created = |class: &StorageClass| class.metadata.creation_timestamp.as_ref().map(|t| t.0);
    defaults.sort_by_key(|class| (std::cmp::Reverse(created(class)), class.name_any()));
    defaults.first().map(|class| class.name_any())
}

/// Ties claim and volume to each other: first the volume, so that nobody else takes it. What is done already is not
/// written again.
async fn bind(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    cx: &Context,
) -> Result<(), ClientError> {
    let client = cx.client();
    let mut bound = volume.clone();
    binding::bind_volume(&mut bound, claim);
    bound = replace(client, volume, bound).await?;
    if volume_phase(&bound) != "Bound" {
        binding::set_volume_phase(&mut bound, "Bound");
        bound = client.update_status(&bound).await?;
    }
    let mut tied = claim.clone();
    binding::bind_claim(&mut tied, &bound);
    tied = replace(client, claim, tied).await?;
    let mut reported = tied.clone();
    binding::set_bound(&mut reported, &bound);
    if reported.status != tied.status {
        report(client, &tied, |claim| claim.status = reported.status).await?;
    }
    Ok(())
}

/// Binds a volume that was just made to the claim that it was made for, as that is now.
async fn bind_latest(volume: &PersistentVolume, cx: &Context) -> Result<(), ClientError> {
    match cx.client().get::<PersistentVolumeClaim>(cx.key()).await? {
        Some(claim) => bind(&claim, volume, cx).await,
        None => Ok(()),
    }
}

async fn lose(claim: &PersistentVolumeClaim, note: Note, cx: &Context) -> Result<(), ClientError> {
    if objects::claim_phase(claim) == "Lost" {
        return Ok(());
    }
    report(cx.client(), claim, |claim| {
        binding::set_unbound(claim, "Lost")
    })
    .await?;
    tell(cx, claim, Some(note));
    Ok(())
}

struct Volumes;

impl Reconciler<PersistentVolume> for Volumes {
    async fn reconcile(
        &self,
        volume: Arc<PersistentVolume>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let claim = match claim_of(&volume) {
            Some(key) => cx.client().get::<PersistentVolumeClaim>(&key).await?,
            None => None,
        };
        let mut claim = claim;
        let mut step = volume_step(&volume, claim.as_deref());
        if matches!(step, VolumeStep::Release(_)) {
            claim = live_claim(&volume, cx).await?;
            step = volume_step(&volume, claim.as_deref());
        }
        match step {
            VolumeStep::Leave => {}
            VolumeStep::RefuseMode => tell_of_modes(&volume, claim.as_deref(), cx),
            VolumeStep::MarkAvailable => set_phase(&volume, "Available", cx).await?,
            VolumeStep::MarkBound => set_phase(&volume, "Bound", cx).await?,
            VolumeStep::Unbind => unbind(&volume, cx).await?,
            VolumeStep::Release(how) => Box::pin(release(&volume, how, cx)).await?,
        }
        Ok(Outcome::done())
    }
}

/// The claim of a volume as the server has it: the cache may be behind, and a volume is not to be given up for that.
async fn live_claim(
    volume: &PersistentVolume,
    cx: &Context,
) -> Result<Option<Arc<PersistentVolumeClaim>>, ClientError> {
    let Some(key) = claim_of(volume) else {
        return Ok(None);
    };
    let live = cx.client().live().get(&key).await?;
    Ok(live.map(Arc::new))
}

/// Says to both that they cannot be bound.
fn tell_of_modes(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>, cx: &Context) {
    let Some(claim) = claim else { return };
    let (reason, kind) = ("VolumeMismatch", EventKind::Warning);
    let text = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} due to incompatible volumeMode.",
        claim.name_any()
    );
    cx.event(volume, kind, reason, text);
    let text = format!(
        "Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim due to incompatible volumeMode.",
        volume.name_any()
    );
    cx.event(claim, kind, reason, text);
}

/// Gives a volume up whose claim is gone.
async fn release(volume: &PersistentVolume, how: Reclaim, cx: &Context) -> Result<(), ClientError> {
    let client = cx.client();
    // First this, or its protection would keep what is about to go.
    if plan::is_news_of_release(volume) {
        set_phase(volume, "Released", cx).await?;
    }
    match how {
        Reclaim::Retain | Reclaim::DeleteByOthers => Ok(()),
        Reclaim::Recycle => unbind(volume, cx).await,
        Reclaim::Delete if volume.metadata.deletion_timestamp.is_some() => Ok(()),
        Reclaim::Delete => {
            let deleted = client.delete(volume, Delete::background()).await;
            deleted.ignore_not_found().map(drop)
        }
    }
}

async fn unbind(volume: &PersistentVolume, cx: &Context) -> Result<(), ClientError> {
    let mut freed = volume.clone();
    binding::unbind_volume(&mut freed);
    let freed = replace(cx.client(), volume, freed).await?;
    set_phase(&freed, "Available", cx).await
}

async fn set_phase(
    volume: &PersistentVolume,
    phase: &str,
    cx: &Context,
) -> Result<(), ClientError> {
    if volume_phase(volume) == phase {
        return Ok(());
    }
    let change = |volume: &mut PersistentVolume| binding::set_volume_phase(volume, phase);
    report(cx.client(), volume, change).await
}
