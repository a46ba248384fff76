//! Updates that never end, never happen, or cannot be taken back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{Context, Error, Outcome};
use kubewright_sim::{Campaign, FaultKind};

use crate::Form;
use crate::store::{Store, StoreStatus, campaign, change, child, get, key, owned, store};

/// Altinity/clickhouse-operator pull request 1430: the status has the version of the object that it was made from, so each
/// write of it is a change, and each change a reason to write it.
pub(crate) fn hot_loop(form: Form) -> Campaign {
    campaign("clickhouse-1430", form, note_version)
        .step("create", async |user| {
            user.create(&store(1, 10)).await?;
            Ok(())
        })
        .quiet(Duration::from_secs(60))
        .only([FaultKind::CrashAfter, FaultKind::Restart])
}

async fn note_version(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let version = match form {
        Form::Buggy => store.metadata.resource_version.clone(),
        // It moves when the spec does, and not with the status.
        Form::Fixed => store.metadata.generation.map(|number| number.to_string()),
    };
    let status = StoreStatus {
        updated: version,
        ..StoreStatus::default()
    };
    let noted = cx.client().modify_status(&*store, |store: &mut Store| {
        store.status = Some(status);
    });
    noted.await?;
    Ok(Outcome::done())
}

/// pravega/zookeeper-operator #474: the annotations of a service are set when it is created, and never again.
pub(crate) fn created_not_updated(form: Form) -> Campaign {
    campaign("zookeeper-474", form, keep_service)
        .step("create", async |user| {
            user.create(&store(1, 10)).await?;
            Ok(())
        })
        .only([
            FaultKind::HumanEdit,
            FaultKind::HumanDelete,
            FaultKind::CrashAfter,
        ])
}

async fn keep_service(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let wanted = child("service", "service", &[("port", "2181".to_owned())]);
    let wanted = owned(&store, wanted)?;
    match get(&cx, "service").await? {
        None => {
            cx.client().create(&wanted).await?;
        }
        Some(present) if form == Form::Fixed => {
            let kept = cx.client().modify(&*present, |map: &mut ConfigMap| {
                map.data.clone_from(&wanted.data);
                map.metadata.labels.clone_from(&wanted.metadata.labels);
                map.metadata.annotations = None;
            });
            kept.await?;
        }
        Some(_) => {}
    }
    Ok(Outcome::done())
}

/// pingcap/tidb-operator #4942: options are merged into what is there, so one that is taken out of the spec stays.
pub(crate) fn never_removed(form: Form) -> Campaign {
    campaign("tidb-4942", form, keep_options)
        .step("create", async |user| {
            let mut store = store(1, 10);
            store.spec.options = [("a".to_owned(), "1".to_owned())].into();
            user.create(&store).await?;
            Ok(())
        })
        .step("take the option back", async |user| {
            change(&user, |spec| spec.options.clear()).await?;
            user.wait(Duration::from_secs(300)).await;
            let config = user.get::<ConfigMap>(&key("config")).await?;
            match config.and_then(|config| config.data) {
                Some(data) if !data.is_empty() => Err(Error::msg("the option is still there")),
                _ => Ok(()),
            }
        })
        .only([FaultKind::CrashAfter, FaultKind::Refuse])
}

async fn keep_options(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let present = get(&cx, "config").await?;
    let mut data: BTreeMap<String, String> = BTreeMap::new();
    if form == Form::Buggy
        && let Some(present) = &present
    {
        data.clone_from(present.data.as_ref().unwrap_or(&BTreeMap::new()));
    }
    data.extend(store.spec.options.clone());
    let mut wanted = owned(&store, child("config", "config", &[]))?;
    wanted.data = Some(data);
    match present {
        None => drop(cx.client().create(&wanted).await?),
        Some(present) => {
            let kept = cx
                .client()
                .modify(&*present, |map: &mut ConfigMap| map.data = wanted.data);
            kept.await?;
        }
    }
    Ok(Outcome::done())
}
