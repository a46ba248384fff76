//! Clean-up that depends on what was seen, or on names.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams};
use kubewright_runtime::{Cleanup, Context, Error, Outcome, finalize};
use kubewright_sim::{Campaign, FaultKind, User};

use crate::Form;
use crate::store::{
    NAME, Store, campaign, change, child, claim, ensure, get, key, list, member, name_of, owned,
    remove, store,
};

/// What holds a member for a while, as a kubelet holds a pod that terminates.
const HOLD: &str = "corpus.dev/terminating";

/// instaclustr/cassandra-operator #398: the claim of a member is deleted when the member is seen terminating. If the member is
/// gone before that is seen, the claim stays.
pub(crate) fn unseen_termination(form: Form) -> Campaign {
    campaign("cassandra-398", form, scale_in)
        .step("create", async |user| {
            user.create(&store(2, 10)).await?;
            Ok(())
        })
        .step("scale in", async |user| {
            change(&user, |spec| spec.members = 1).await?;
            user.wait(Duration::from_secs(2)).await;
            release(&user, &member(1)).await
        })
        // A member that a stale view brings back would need somebody who ends its termination again.
        .without(FaultKind::StaleRestart)
}

async fn scale_in(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    for index in 0..store.spec.members {
        ensure(&cx, owned(&store, child(&claim(index), "claim", &[]))?).await?;
        let mut new = child(&member(index), "member", &[]);
        new.metadata.finalizers = Some(vec![HOLD.to_owned()]);
        ensure(&cx, owned(&store, new)?).await?;
    }
    let members = list(&cx, "member").await?;
    let surplus = |name: &str| (0..store.spec.members).all(|index| member(index) != name);
    for present in &members {
        let leaves = present.metadata.deletion_timestamp.is_some();
        if surplus(&name_of(&**present)) && !leaves {
            remove(&cx, present).await?;
        }
        if form == Form::Buggy && leaves {
            remove_claim_of(&cx, &name_of(&**present)).await?;
        }
    }
    if form == Form::Fixed {
        // The claims themselves say which of them nobody needs.
        for present in list(&cx, "claim").await? {
            let owner = name_of(&*present).replace("claim-", "");
            if surplus(&owner) {
                remove(&cx, &present).await?;
            }
        }
    }
    Ok(Outcome::done())
}

async fn remove_claim_of(cx: &Context, member: &str) -> Result<(), Error> {
    if let Some(claim) = get(cx, &format!("claim-{member}")).await? {
        remove(cx, &claim).await?;
    }
    Ok(())
}

/// Ends the termination of a member, as a kubelet does when its containers have stopped.
pub(crate) async fn release(user: &User, name: &str) -> Result<(), Error> {
    // Under a fault the operator may be late.
    for _ in 0..60 {
        let present = user.get::<ConfigMap>(&key(name)).await?;
        let Some(present) = present else {
            return Ok(());
        };
        if present.metadata.deletion_timestamp.is_some() {
            user.modify(&key(name), |map: &mut ConfigMap| {
                map.metadata.finalizers = None
            })
            .await?;
            return Ok(());
        }
        user.wait(Duration::from_secs(2)).await;
    }
    Err(Error::msg(format!("{name} is never deleted")))
}

/// datastax/cass-operator #412 (K8SSAND-559): claims are found by the name of their store. An operator that sees the deletion
/// of the store's last incarnation deletes the claims of the present one.
pub(crate) fn by_name(form: Form) -> Campaign {
    campaign("cass-operator-412", form, with_finalizer)
        // The fixed form leaves what a stale view brings back to the garbage collector.
        .cluster(|cluster| cluster)
        .step("create", create)
        .step("delete", async |user| {
            user.delete::<Store>(&key(NAME)).await
        })
        .step("create again", create)
        .only([
            FaultKind::StaleRestart,
            FaultKind::CrashAfter,
            FaultKind::Restart,
        ])
}

async fn create(user: User) -> Result<(), Error> {
    user.create(&store(1, 10)).await?;
    Ok(())
}

async fn with_finalizer(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let apply = async |store: Arc<Store>| {
        let mut new = child(&claim(0), "claim", &[]);
        if form == Form::Fixed {
            new = owned(&store, new)?;
        }
        ensure(&cx, new).await
    };
    let cleanup = async |store: Arc<Store>| {
        if form == Form::Buggy {
            let claims = Api::<ConfigMap>::namespaced(cx.client().kube().clone(), "default");
            let gone = claims.delete(&claim(0), &DeleteParams::default()).await;
            if let Err(error) = gone
                && !matches!(&error, kube::Error::Api(status) if status.code == 404)
            {
                return Err(Error::msg(error));
            }
        } else {
            remove_own(&cx, &store).await?;
        }
        Ok(Cleanup::Done)
    };
    finalize(cx.client(), store, "corpus.dev/claims", apply, cleanup).await?;
    Ok(Outcome::done())
}

/// Removes the claim of this very store, and none of another of the same name.
async fn remove_own(cx: &Context, store: &Store) -> Result<(), Error> {
    let present = cx.client().live().get::<ConfigMap>(&key(&claim(0))).await?;
    let Some(present) = present else {
        return Ok(());
    };
    let mut owners = present.metadata.owner_references.iter().flatten();
    if owners.any(|owner| Some(&owner.uid) == store.metadata.uid.as_ref()) {
        remove(cx, &present).await?;
    }
    Ok(())
}
