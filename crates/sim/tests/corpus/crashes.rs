//! Crashes between two writes: the operator comes up in a state that it does not expect.

use std::sync::Arc;

use kubewright_runtime::{Context, Error, Outcome};
use kubewright_sim::{Campaign, FaultKind};

use crate::Form;
use crate::store::{
    Store, StoreStatus, campaign, change, child, claim, ensure, field, get, list, member, owned,
    remove, set, store,
};

/// rabbitmq/cluster-operator #782: volumes grow by deleting the set, growing the claims, and creating the set anew. Whether
/// they have to grow is read from the set, so after a crash behind its deletion nobody grows the claims.
pub(crate) fn expansion(form: Form) -> Campaign {
    campaign("rabbitmq-782", form, expand)
        .step("create", async |user| {
            user.create(&store(2, 10)).await?;
            Ok(())
        })
        .step("grow", async |user| {
            change(&user, |spec| spec.volume = 15).await
        })
}

async fn expand(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let size = store.spec.volume.to_string();
    for index in 0..store.spec.members {
        let new = child(&claim(index), "claim", &[("size", size.clone())]);
        ensure(&cx, owned(&store, new)?).await?;
    }
    if form == Form::Fixed {
        // The claims themselves say whether they are large enough.
        grow_claims(&store, &cx, &size).await?;
    }
    if let Some(present) = get(&cx, "set").await?
        && field(&present, "size") != size
    {
        remove(&cx, &present).await?;
        if form == Form::Buggy {
            grow_claims(&store, &cx, &size).await?;
        }
    }
    let new = child("set", "set", &[("size", size)]);
    ensure(&cx, owned(&store, new)?).await?;
    Ok(Outcome::done())
}

async fn grow_claims(store: &Store, cx: &Context, size: &str) -> Result<(), Error> {
    for index in 0..store.spec.members {
        set(cx, &claim(index), "size", size).await?;
    }
    Ok(())
}

/// Orange-OpenSource/casskop #370: a scale-in goes through phases that are kept in the status. The member is deleted before
/// the next phase is stored, so after a crash in between the operator looks for a member that is gone, and fails for ever.
pub(crate) fn phases(form: Form) -> Campaign {
    campaign("casskop-370", form, scale_by_phases)
        .step("create", async |user| {
            user.create(&store(2, 10)).await?;
            Ok(())
        })
        .step("scale in", async |user| {
            change(&user, |spec| spec.members = 1).await
        })
        .without(FaultKind::StaleRestart)
}

async fn scale_by_phases(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    for index in 0..store.spec.members {
        ensure(&cx, owned(&store, child(&claim(index), "claim", &[]))?).await?;
        ensure(&cx, owned(&store, child(&member(index), "member", &[]))?).await?;
    }
    let last = list(&cx, "claim").await?.len().saturating_sub(1);
    let last = u32::try_from(last).unwrap_or_default();
    let phase = store
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if last < store.spec.members {
        // The last note may have been lost.
        if form == Form::Fixed && phase.is_some() {
            note(&store, &cx, None).await?;
        }
        return Ok(Outcome::done());
    }
    match phase {
        None => note(&store, &cx, Some("decommissioning")).await?,
        Some("decommissioning") => {
            let Some(present) = get(&cx, &member(last)).await? else {
                return Err(Error::msg("the member to be decommissioned does not exist"));
            };
            if form == Form::Fixed {
                note(&store, &cx, Some("finalizing")).await?;
            }
            remove(&cx, &present).await?;
            if form == Form::Buggy {
                note(&store, &cx, Some("finalizing")).await?;
            }
        }
        Some(_) => finish(&store, &cx, last).await?,
    }
    Ok(Outcome::done())
}

/// Removes the member if that is still to be done, then its claim, and ends the scale-in.
async fn finish(store: &Store, cx: &Context, last: u32) -> Result<(), Error> {
    if let Some(present) = get(cx, &member(last)).await? {
        remove(cx, &present).await?;
    }
    if let Some(present) = get(cx, &claim(last)).await? {
        remove(cx, &present).await?;
    }
    note(store, cx, None).await
}

async fn note(store: &Store, cx: &Context, phase: Option<&str>) -> Result<(), Error> {
    let status = StoreStatus {
        phase: phase.map(str::to_owned),
        ..StoreStatus::default()
    };
    let noted = cx.client().modify_status(store, |store: &mut Store| {
        store.status = Some(status);
    });
    noted.await?;
    Ok(())
}
