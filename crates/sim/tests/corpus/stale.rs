//! Decisions on what was, instead of on what is.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams};
use kubewright_runtime::client::Consistency;
use kubewright_runtime::{Context, Error, Outcome};
use kubewright_sim::{Campaign, FaultKind};

use crate::Form;
use crate::deletion::release;
use crate::store::{
    NAME, Store, StoreStatus, campaign, change, child, claim, ensure, field, get, key, list,
    member, name_of, owned, remove, set, store,
};

/// instaclustr/cassandra-operator #407: after a restart on a stale API server the operator sees a member terminate that has
/// come back since, and deletes the claim of the present one.
pub(crate) fn claims_of_the_living(form: Form) -> Campaign {
    campaign("cassandra-407", form, scale)
        .step("create", async |user| {
            user.create(&store(2, 10)).await?;
            Ok(())
        })
        .step("scale in", async |user| {
            change(&user, |spec| spec.members = 1).await?;
            user.wait(Duration::from_secs(2)).await;
            release(&user, &member(1)).await
        })
        .step("scale out", async |user| {
            change(&user, |spec| spec.members = 2).await
        })
        .only([
            FaultKind::StaleRestart,
            FaultKind::CrashAfter,
            FaultKind::Refuse,
        ])
}

async fn scale(form: Form, mut store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    if form == Form::Fixed {
        // What is asked of the server is not of the past.
        let Some(live) = cx.client().live().get::<Store>(&key(NAME)).await? else {
            return Ok(Outcome::done());
        };
        store = Arc::new(live);
    }
    for index in 0..store.spec.members {
        ensure(&cx, owned(&store, child(&claim(index), "claim", &[]))?).await?;
        let mut new = child(&member(index), "member", &[]);
        new.metadata.finalizers = Some(vec!["corpus.dev/terminating".to_owned()]);
        ensure(&cx, owned(&store, new)?).await?;
    }
    if form == Form::Fixed {
        return scale_in_by_what_is(&store, &cx).await;
    }
    for present in list(&cx, "member").await? {
        let name = name_of(&*present);
        if present.metadata.deletion_timestamp.is_some() {
            let claims = Api::<ConfigMap>::namespaced(cx.client().kube().clone(), "default");
            let claim = format!("claim-{name}");
            // Whatever comes of it: the claim may be gone.
            let _ = claims.delete(&claim, &DeleteParams::default()).await;
        } else if is_surplus(&store, &name) {
            remove(&cx, &present).await?;
        }
    }
    Ok(Outcome::done())
}

/// Whether a member is beyond what the store asks for.
fn is_surplus(store: &Store, name: &str) -> bool {
    (0..store.spec.members).all(|index| member(index) != name)
}

/// Deletes what it was shown, and nothing that came after it.
async fn scale_in_by_what_is(store: &Store, cx: &Context) -> Result<Outcome, Error> {
    let mut surplus = list(cx, "member").await?;
    surplus.extend(list(cx, "claim").await?);
    surplus.retain(|map| is_surplus(store, name_of(&**map).trim_start_matches("claim-")));
    for present in surplus {
        if present.metadata.deletion_timestamp.is_none() {
            remove(cx, &present).await?;
        }
    }
    Ok(Outcome::done())
}

/// rabbitmq/cluster-operator #653: to grow its volumes the set is deleted by its name and made anew. A view from before the
/// change deletes the set that was made since.
pub(crate) fn shrinking(form: Form) -> Campaign {
    campaign("rabbitmq-653", form, resize)
        .step("create", async |user| {
            user.create(&store(1, 10)).await?;
            Ok(())
        })
        .step("grow", async |user| {
            change(&user, |spec| spec.volume = 15).await
        })
        .only([
            FaultKind::StaleRestart,
            FaultKind::CrashAfter,
            FaultKind::Refuse,
        ])
}

async fn resize(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let size = store.spec.volume.to_string();
    if let Some(old) = get(&cx, "set").await?
        && field(&old, "size") != size
    {
        if form == Form::Buggy {
            let sets = Api::<ConfigMap>::namespaced(cx.client().kube().clone(), "default");
            // Whatever comes of it: the set may be gone.
            let _ = sets.delete("set", &DeleteParams::default()).await;
            return Ok(Outcome::requeue_after(Duration::from_secs(1)));
        }
        remove(&cx, &old).await?;
    }
    let new = child("set", "set", &[("size", size)]);
    ensure(&cx, owned(&store, new)?).await?;
    Ok(Outcome::done())
}

/// Orange-OpenSource/casskop #357: a change is compared with the last state that was seen, and one of more than one step is
/// taken back. If the state in between is not seen, a change in two single steps is taken back too.
pub(crate) fn unseen_step(form: Form) -> Campaign {
    campaign("casskop-357", form, step_by_step)
        .step("create", async |user| {
            user.create(&store(3, 10)).await?;
            Ok(())
        })
        .step("scale in twice", async |user| {
            change(&user, |spec| spec.members = spec.members.min(2)).await?;
            user.wait(Duration::from_secs(10)).await;
            change(&user, |spec| spec.members = 1).await
        })
        .only([FaultKind::Lag, FaultKind::Skip, FaultKind::Cut])
}

async fn step_by_step(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let seen = store.status.as_ref().and_then(|status| status.members);
    let mut wanted = store.spec.members;
    if form == Form::Buggy
        && let Some(seen) = seen
        && wanted + 1 < seen
    {
        wanted = seen;
        let restored = cx.client().modify(&*store, |store: &mut Store| {
            store.spec.members = wanted;
        });
        restored.await?;
    }
    if seen != Some(wanted) {
        let status = StoreStatus {
            members: Some(wanted),
            ..StoreStatus::default()
        };
        let noted = cx.client().modify_status(&*store, |store: &mut Store| {
            store.status = Some(status);
        });
        noted.await?;
    }
    Ok(Outcome::done())
}

/// instaclustr/cassandra-operator #410: a scale-in first decommissions a member, then deletes it. If people change their mind
/// in between, the member stays decommissioned for ever.
pub(crate) fn half_done_scaling(form: Form) -> Campaign {
    campaign("cassandra-410", form, decommission)
        .step("create", async |user| {
            user.create(&store(2, 10)).await?;
            Ok(())
        })
        .step("scale in and out", async |user| {
            change(&user, |spec| spec.members = 1).await?;
            user.wait(Duration::from_secs(15)).await;
            change(&user, |spec| spec.members = 2).await
        })
        .only([FaultKind::Lag])
}

async fn decommission(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let active = || [("state", "active".to_owned())];
    for index in 0..store.spec.members {
        ensure(
            &cx,
            owned(&store, child(&member(index), "member", &active()))?,
        )
        .await?;
    }
    let members = list(&cx, "member").await?;
    for present in members {
        let name = name_of(&*present);
        let is_active = field(&present, "state") == "active";
        if !is_surplus(&store, &name) {
            // Somebody changed their mind.
            if form == Form::Fixed && !is_active {
                set(&cx, &name, "state", "active").await?;
            }
        } else if is_active {
            set(&cx, &name, "state", "decommissioned").await?;
            return Ok(Outcome::done());
        } else {
            remove(&cx, &present).await?;
        }
    }
    Ok(Outcome::done())
}

/// opensearch-project/opensearch-k8s-operator #1471: members are restarted one at a time, as long as the cache shows the others
/// to be there. A cache that does not show the operator's own last deletion allows the next. The fix is the toolkit's default:
/// reads wait for the operator's own writes.
pub(crate) fn two_disruptions(form: Form) -> Campaign {
    let consistency = match form {
        Form::Buggy => Consistency::Eventual,
        Form::Fixed => Consistency::default(),
    };
    campaign("opensearch-1471", form, roll)
        .consistency(consistency)
        .step("create", async |user| {
            user.create(&store(3, 10)).await?;
            Ok(())
        })
        .step("change", async |user| {
            change(&user, |spec| spec.volume = 20).await
        })
        .invariant("two of three members are there", |state| {
            let members = state.list::<ConfigMap>();
            let members = members.iter().filter(|map| !field(map, "size").is_empty());
            let (all, old) = (
                members.clone().count(),
                members.filter(|map| field(map, "size") == "10").count(),
            );
            // While the store comes up there are fewer, and all of them are of the first size.
            all >= 2 || (old == all && !state.has("configmaps", "default/came-up"))
        })
        .only([FaultKind::Lag, FaultKind::CrashAfter])
}

async fn roll(_: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let size = store.spec.volume.to_string();
    for index in 0..store.spec.members {
        let data = [("size", size.clone())];
        create(&store, &cx, child(&member(index), "member", &data)).await?;
    }
    create(&store, &cx, child("came-up", "mark", &[])).await?;
    for old in list(&cx, "member").await? {
        // Only while all are there: the guard of the quorum.
        if field(&old, "size") != size && list(&cx, "member").await?.len() == 3 {
            remove(&cx, &old).await?;
        }
    }
    Ok(Outcome::done())
}

/// Creates a child that the cache does not show. A cache that is late does not show all that is there.
async fn create(store: &Store, cx: &Context, child: ConfigMap) -> Result<(), Error> {
    if get(cx, &name_of(&child)).await?.is_some() {
        return Ok(());
    }
    match cx.client().create(&owned(store, child)?).await {
        Err(error) if error.is_already_exists() => Ok(()),
        created => created.map(drop).map_err(Error::from),
    }
}
