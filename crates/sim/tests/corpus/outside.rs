//! What belongs to others, and what lives outside of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResourceExt;
use kubewright_runtime::owners::is_controlled_by;
use kubewright_runtime::{Cleanup, Context, Controller, Error, Outcome, finalize, from_fn};
use kubewright_sim::{Campaign, External, ExternalSystem, FaultKind, Process};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Form;
use crate::store::{NAME, Store, StoreStatus, campaign, child, get, key, owned, store};

/// A cloud that names what it makes.
#[derive(Default)]
struct Cloud {
    /// The owner of each database, by the database's name.
    databases: Mutex<BTreeMap<String, String>>,
    made: Mutex<u32>,
}

impl Cloud {
    fn create(&self, owner: &str) -> String {
        let mut made = self.made.lock();
        *made += 1;
        let name = format!("database-{made}");
        self.databases.lock().insert(name.clone(), owner.to_owned());
        name
    }

    fn find(&self, owner: &str) -> Option<String> {
        let databases = self.databases.lock();
        let mut all = databases.iter();
        all.find(|(_, of)| *of == owner)
            .map(|(name, _)| name.clone())
    }
}

impl ExternalSystem for Cloud {
    fn state(&self) -> Value {
        // Names and owners differ from run to run; how many there are does not.
        json!(self.databases.lock().len())
    }
}

/// crossplane/crossplane-runtime #283: the name that a cloud gave to a resource is stored after the resource was made. After a
/// crash in between nobody knows of the first, and a second is made.
pub(crate) fn forgotten_resource(form: Form) -> Campaign {
    Campaign::new("crossplane-283", move |process: &Process| {
        let cloud = process.external::<Cloud>();
        let reconcile = move |store, cx| provision(form, cloud.clone(), store, cx);
        let controller = Controller::of::<Store>("store").reconciler(from_fn(reconcile));
        process.manager().name("corpus").controller(controller)
    })
    .install(&Store::crd())
    .cluster(|cluster| cluster.without_controllers())
    .external(Cloud::default)
    .mask("status.external")
    .step("create", async |user| {
        user.create(&store(1, 10)).await?;
        Ok(())
    })
    .step("delete", async |user| {
        user.delete::<Store>(&key(NAME)).await
    })
    .only([
        FaultKind::CrashBefore,
        FaultKind::CrashAfter,
        FaultKind::LoseAnswer,
        FaultKind::Refuse,
    ])
}

async fn provision(
    form: Form,
    cloud: External<Cloud>,
    store: Arc<Store>,
    cx: Context,
) -> Result<Outcome, Error> {
    let owner = store.metadata.uid.clone().unwrap_or_default();
    let apply = async |store: Arc<Store>| {
        if external_of(&store).is_some() {
            return Ok(());
        }
        let mut name = None;
        if form == Form::Fixed {
            // The cloud knows for whom a database was made.
            name = cloud.read(|cloud| cloud.find(&owner));
        }
        if name.is_none() {
            let made = cloud.call("create", NAME, |cloud| cloud.create(&owner));
            name = Some(made.await.map_err(Error::msg)?);
        }
        let noted = cx.client().modify_status(&*store, |store: &mut Store| {
            let status = StoreStatus {
                external: name,
                ..StoreStatus::default()
            };
            store.status = Some(status);
        });
        noted.await?;
        Ok(())
    };
    let cleanup = async |store: Arc<Store>| {
        let found = match form {
            Form::Buggy => None,
            Form::Fixed => cloud.read(|cloud| cloud.find(&owner)),
        };
        if let Some(name) = external_of(&store).or(found) {
            let gone = cloud.call("delete", NAME, |cloud| cloud.databases.lock().remove(&name));
            gone.await.map_err(Error::msg)?;
        }
        Ok::<_, Error>(Cleanup::Done)
    };
    finalize(cx.client(), store, "corpus.dev/cloud", apply, cleanup).await?;
    Ok(Outcome::done())
}

fn external_of(store: &Store) -> Option<String> {
    store
        .status
        .as_ref()
        .and_then(|status| status.external.clone())
}

/// seaweedfs/seaweedfs-operator #377: credentials are written into an object of a given name, whoever made that object.
pub(crate) fn adoption(form: Form) -> Campaign {
    campaign("seaweedfs-377", form, keep_credentials)
        .step("somebody else's", async |user| {
            let theirs = child(
                "credentials",
                "theirs",
                &[("password", "theirs".to_owned())],
            );
            user.create(&theirs).await?;
            Ok(())
        })
        .step("create", async |user| {
            user.create(&store(1, 10)).await?;
            Ok(())
        })
        .invariant("nobody writes into somebody else's object", |state| {
            let password = state.get("configmaps", "default/credentials");
            password.is_none_or(|map| map["data"]["password"] == "theirs")
        })
        .only([FaultKind::CrashAfter, FaultKind::Cut])
}

async fn keep_credentials(form: Form, store: Arc<Store>, cx: Context) -> Result<Outcome, Error> {
    let wanted = child(
        "credentials",
        "credentials",
        &[("password", "ours".to_owned())],
    );
    match get(&cx, "credentials").await? {
        None => drop(cx.client().create(&owned(&store, wanted)?).await?),
        Some(present) if form == Form::Fixed && !is_controlled_by(&*store, &*present) => {
            // Another run cannot change that; a change of the store can.
            return Err(Error::terminal("credentials belong to somebody else"));
        }
        Some(present) => {
            let kept = cx
                .client()
                .modify(&*present, |map: &mut ConfigMap| map.data = wanted.data);
            kept.await?;
        }
    }
    Ok(Outcome::done())
}
