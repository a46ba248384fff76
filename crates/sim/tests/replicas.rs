//! Several replicas of an operator: one leads and another takes over, or they share the objects.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use kubewright_runtime::{
    Context, Controller, Error, LeaseOptions, Manager, Outcome, Query, ShardingOptions, from_fn,
};
use kubewright_sim::{Campaign, FaultKind, Process, User, Violation};

/// How replicas keep out of each other's way.
#[derive(Debug, Clone, Copy)]
enum Form {
    Careless,
    Elected,
    Sharded,
}

/// For each Secret a ConfigMap whose name the server makes: whoever does it twice has two.
async fn copy(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    let of = secret.metadata.name.clone().unwrap_or_default();
    let maps = cx.client().list::<ConfigMap>(Query::all()).await?;
    let prefix = format!("{of}-");
    let is_copy = |map: &Arc<ConfigMap>| map.metadata.generate_name.as_ref() == Some(&prefix);
    if !maps.iter().any(is_copy) {
        let mut map = ConfigMap::default();
        map.metadata.generate_name = Some(prefix);
        map.metadata.namespace = Some("default".to_owned());
        cx.client().create(&map).await?;
    }
    Ok(Outcome::done())
}

fn manager(form: Form, process: &Process) -> Manager {
    let controller = Controller::of::<Secret>("copy").reconciler(from_fn(copy));
    let manager = process.manager().name("copy").controller(controller);
    let identity = format!("process-{}", process.number());
    match form {
        Form::Careless => manager,
        Form::Elected => manager.leader_election(LeaseOptions::new("default", "copy", &identity)),
        Form::Sharded => manager.sharded(ShardingOptions::new("default", "copy", &identity)),
    }
}

async fn create(user: User) -> Result<(), Error> {
    for name in ["a", "b", "c"] {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.namespace = Some("default".to_owned());
        user.create(&secret).await?;
    }
    Ok(())
}

fn campaign(form: Form) -> Campaign {
    Campaign::new("copy", move |process| manager(form, process))
        .cluster(|cluster| cluster.without_controllers())
        .replicas(2)
        .step("create", create)
        .invariant("each has one copy", |state| {
            let maps = state.list::<ConfigMap>();
            let mut names = maps.iter().map(|map| map.metadata.generate_name.clone());
            let mut seen = std::collections::BTreeSet::new();
            names.all(|name| seen.insert(name))
        })
        .only([
            FaultKind::CrashBefore,
            FaultKind::Partition,
            FaultKind::LoseLease,
            FaultKind::Restart,
        ])
}

#[test]
fn replicas_without_an_election_do_everything_twice() {
    let report = campaign(Form::Careless).run();
    let [failure] = &report.failures[..] else {
        panic!("{report}")
    };
    assert!(
        matches!(&failure.violation, Violation::Invariant { .. }),
        "{report}"
    );
}

#[test]
fn one_replica_leads_and_another_takes_over() {
    let report = campaign(Form::Elected).run();
    assert!(report.is_clean(), "{report}");
    assert!(report.kinds["partition-before"] >= 3, "{report}");
    assert!(report.kinds["lose-lease-after"] >= 1, "{report}");
}

#[test]
fn replicas_share_the_objects() {
    let report = campaign(Form::Sharded).run();
    assert!(report.is_clean(), "{report}");
}
