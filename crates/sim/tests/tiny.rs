//! Three mistakes that published operators have made, each as a small operator in a wrong and a right form: the campaign finds
//! the wrong one, with a token that repeats it, and has nothing to say about the right one.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams};
use kube::core::ObjectMeta;
use kubewright_runtime::owners::is_controlled_by;
use kubewright_runtime::{
    Cleanup, Context, Controller, Delete, Error, IgnoreNotFound, Key, Outcome, Watch, finalize,
    from_fn,
};
use kubewright_sim::{Campaign, FaultKind, Process, Report, User, Violation};

/// Whether an operator makes its mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Buggy,
    Fixed,
}

fn map(name: &str, pairs: &[(&str, &str)]) -> ConfigMap {
    let pairs = pairs.iter();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(pairs.map(|(k, v)| (k.to_string(), v.to_string())).collect()),
        ..ConfigMap::default()
    }
}

fn secret(name: &str, size: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        string_data: Some([("size".to_owned(), size.to_owned())].into()),
        ..Secret::default()
    }
}

fn size_of(secret: &Secret) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get("size"));
    data.map(|size| String::from_utf8_lossy(&size.0).into_owned())
        .unwrap_or_default()
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn owned_by(secret: &Secret, mut map: ConfigMap) -> ConfigMap {
    map.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        name: secret.metadata.name.clone().unwrap_or_default(),
        uid: secret.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        ..OwnerReference::default()
    }]);
    map
}

/// Writes into a ConfigMap.
async fn put(cx: &Context, map: ConfigMap) -> Result<(), Error> {
    let name = map.metadata.name.clone().unwrap_or_default();
    match cx.client().get::<ConfigMap>(&key(&name)).await? {
        None => {
            cx.client().create(&map).await?;
        }
        Some(present) if present.data != map.data => {
            let mut changed = (*present).clone();
            changed.data = map.data;
            cx.client().update(&changed).await?;
        }
        Some(_) => {}
    }
    Ok(())
}

/// Resizes a "volume" and notes the size that it has: RabbitMQ's operator wrote the note first (cluster-operator #782).
async fn resize(form: Form, secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    let size = size_of(&secret);
    let note = owned_by(&secret, map("noted", &[("size", &size)]));
    let volume = owned_by(&secret, map("volume", &[("size", &size)]));
    let noted = cx.client().get::<ConfigMap>(&key("noted")).await?;
    if noted.is_some_and(|noted| noted.data == note.data) {
        return Ok(Outcome::done());
    }
    if form == Form::Buggy {
        put(&cx, note).await?;
        put(&cx, volume).await?;
    } else {
        put(&cx, volume).await?;
        put(&cx, note).await?;
    }
    Ok(Outcome::done())
}

/// Removes what it made when its owner goes: if it sees the owner terminate, or behind a finalizer. The cassandra-operator
/// removed claims only if it saw the pod terminate (#398).
async fn clean(form: Form, secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    let child = child_of(&cx);
    if form == Form::Buggy {
        if secret.metadata.deletion_timestamp.is_some() {
            remove(&cx, &child).await?;
        } else {
            put(&cx, map(child.name(), &[])).await?;
        }
        return Ok(Outcome::done());
    }
    // The owner is for whoever takes the child for the past's: the garbage collector removes it.
    let apply = async |secret: Arc<Secret>| {
        let child = owned_by(&secret, map(child.name(), &[]));
        put(&cx, child).await
    };
    let cleanup = async |_| {
        remove(&cx, &child).await?;
        Ok::<_, Error>(Cleanup::Done)
    };
    finalize(cx.client(), secret, "tiny.dev/clean", apply, cleanup).await?;
    Ok(Outcome::done())
}

/// Removes what it made behind a finalizer: by name and whatever the server says, or the object that it knows. The
/// percona-server-mongodb-operator removed what belonged to the next cluster of that name (K8SPSMDB-430).
async fn delete_by_name(form: Form, secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    let child = child_of(&cx);
    let apply = async |secret: Arc<Secret>| {
        let map = map(child.name(), &[]);
        match form {
            Form::Buggy => put(&cx, map).await,
            Form::Fixed => put(&cx, owned_by(&secret, map)).await,
        }
    };
    let cleanup = async |secret: Arc<Secret>| {
        if form == Form::Buggy {
            let maps = Api::<ConfigMap>::namespaced(cx.client().kube().clone(), "default");
            let _ = maps.delete(child.name(), &DeleteParams::default()).await;
        } else {
            remove_owned(&cx, &secret, &child).await?;
        }
        Ok::<_, Error>(Cleanup::Done)
    };
    finalize(cx.client(), secret, "tiny.dev/delete", apply, cleanup).await?;
    Ok(Outcome::done())
}

fn child_of(cx: &Context) -> Key {
    key(&format!("{}-data", cx.key().name()))
}

async fn remove(cx: &Context, child: &Key) -> Result<(), Error> {
    if let Some(present) = cx.client().get::<ConfigMap>(child).await? {
        let gone = cx.client().delete(&*present, Delete::background()).await;
        gone.ignore_not_found()?;
    }
    Ok(())
}

/// Removes the child of this very secret, and none of another of the same name.
async fn remove_owned(cx: &Context, secret: &Secret, child: &Key) -> Result<(), Error> {
    let present = cx.client().live().get::<ConfigMap>(child).await?;
    let Some(present) = present.filter(|child| is_controlled_by(secret, child)) else {
        return Ok(());
    };
    let gone = cx.client().delete(&present, Delete::background()).await;
    gone.ignore_not_found()?;
    Ok(())
}

fn resize_campaign(form: Form) -> Campaign {
    let controller = move || {
        Controller::of::<Secret>("resize").reconciler(from_fn(move |it, cx| resize(form, it, cx)))
    };
    Campaign::new("resize", move |process: &Process| {
        process.manager().name("tiny").controller(controller())
    })
    .cluster(|cluster| cluster.without_controllers())
    .step("create", create)
    .step("grow", async |user| {
        user.modify(&key("db"), |db: &mut Secret| {
            db.data = None;
            db.string_data = secret("db", "15").string_data;
        })
        .await?;
        Ok(())
    })
    // It watches nothing but its secrets.
    .without(FaultKind::HumanDelete)
    .without(FaultKind::HumanEdit)
}

fn clean_campaign(form: Form) -> Campaign {
    let controller = move || {
        Controller::of::<Secret>("clean").reconciler(from_fn(move |it, cx| clean(form, it, cx)))
    };
    Campaign::new("clean", move |process: &Process| {
        process.manager().name("tiny").controller(controller())
    })
    .step("create", async |user| {
        let mut db = secret("db", "10");
        // Somebody else holds it for a while.
        db.metadata.finalizers = Some(vec!["other.dev/hold".to_owned()]);
        user.create(&db).await?;
        Ok(())
    })
    .step("delete", async |user| {
        user.delete::<Secret>(&key("db")).await?;
        user.wait(Duration::from_secs(2)).await;
        user.modify(&key("db"), |db: &mut Secret| {
            let finalizers = db.metadata.finalizers.as_mut();
            finalizers
                .expect("it has one")
                .retain(|name| name != "other.dev/hold");
        })
        .await?;
        Ok(())
    })
    .without(FaultKind::HumanDelete)
}

fn delete_campaign(form: Form) -> Campaign {
    let controller = move || {
        let reconciler = from_fn(move |it, cx| delete_by_name(form, it, cx));
        Controller::of::<Secret>("delete").reconciler(reconciler)
    };
    Campaign::new("delete", move |process: &Process| {
        process.manager().name("tiny").controller(controller())
    })
    .step("create", create)
    .step("delete", delete)
    .step("create again", create)
    .without(FaultKind::HumanDelete)
}

async fn create(user: User) -> Result<(), Error> {
    user.create(&secret("db", "10")).await?;
    Ok(())
}

async fn delete(user: User) -> Result<(), Error> {
    user.delete::<Secret>(&key("db")).await
}

/// The fault kinds under which a campaign failed.
fn failing(report: &Report) -> Vec<FaultKind> {
    let failures = report.failures.iter();
    let mut kinds: Vec<FaultKind> = failures
        .flat_map(|failure| failure.plan.faults.iter().map(|fault| fault.kind()))
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

#[test]
fn note_that_is_written_before_its_effect_is_found() {
    let report = resize_campaign(Form::Buggy).run();
    println!("{report}");
    let crashed = report.failures.iter();
    let mut crashed = crashed.filter(|it| it.plan.has(&[FaultKind::CrashAfter]));
    let failure = crashed
        .next_back()
        .expect("a crash between the two is found");
    assert!(matches!(&failure.violation, Violation::Differs { .. }));
    let hint = failure.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("before its effect"), "{hint}");
    // The token repeats it.
    let plan = failure.token.split_once(':').expect("a name").1;
    let again = resize_campaign(Form::Buggy).replay(&plan.parse().expect("a plan"));
    assert_eq!(again.failures.len(), 1, "{again}");
    assert_eq!(again.failures[0].trace.hash(), failure.trace.hash());

    let report = resize_campaign(Form::Fixed).run();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn clean_up_that_depends_on_an_event_is_found() {
    let kinds = [FaultKind::Skip, FaultKind::CrashBefore];
    let report = clean_campaign(Form::Buggy).only(kinds).run();
    println!("{report}");
    assert!(failing(&report).contains(&FaultKind::Skip), "{report}");

    let report = clean_campaign(Form::Fixed).sample(25).run();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn deletion_by_name_is_found() {
    let kinds = [FaultKind::StaleRestart, FaultKind::Refuse];
    let report = delete_campaign(Form::Buggy).only(kinds).run();
    println!("{report}");
    let kinds = failing(&report);
    assert!(kinds.contains(&FaultKind::StaleRestart), "{report}");
    assert!(kinds.contains(&FaultKind::Refuse), "{report}");

    let report = delete_campaign(Form::Fixed).sample(25).run();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn index_that_nobody_added_is_named_by_the_report() {
    let campaign = Campaign::new("mistyped", |process: &Process| {
        let configs = Watch::of::<ConfigMap>();
        let configs =
            configs.map_by_index::<Secret>("by-confg", |it| vec![Key::of(it).to_string()]);
        let controller = Controller::of::<Secret>("mistyped")
            .watches(configs)
            .reconciler(from_fn(|_: Arc<Secret>, _| async { Ok(Outcome::done()) }));
        process.manager().name("tiny").controller(controller)
    });
    let report = campaign
        .cluster(|cluster| cluster.without_controllers())
        .step("create", create)
        .run();
    let text = report.to_string();
    assert!(!report.is_clean(), "{text}");
    assert!(text.contains("by-confg"), "{text}");
}

#[test]
fn resources_that_are_ignored_may_be_left_behind() {
    // Nobody collects garbage in a cluster without controllers.
    let campaign = || {
        let campaign = resize_campaign(Form::Fixed).step("delete", delete);
        campaign.only([FaultKind::CrashBefore])
    };
    let report = campaign().run();
    let failures = &report.failures;
    let leaked = |it: &Violation| matches!(it, Violation::Leaked { .. });
    assert!(failures.iter().any(|it| leaked(&it.violation)), "{report}");

    let report = campaign().ignore("configmaps").run();
    assert!(report.is_clean(), "{report}");
}
