//! Seeds: many faults at once in other orders, the same in every process.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, from_fn};
use kubewright_sim::{Campaign, FaultKind, Plan, User, Violation};

/// Asks the test program for the hash of its runs and nothing else.
const CHILD: &str = "KUBEWRIGHT_TEST_CHILD";

/// For each Secret a ConfigMap of the same name.
async fn copy(secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    if secret.metadata.deletion_timestamp.is_none()
        && cx.client().get::<ConfigMap>(cx.key()).await?.is_none()
    {
        create(&cx, cx.key().name()).await?;
    }
    Ok(Outcome::done())
}

async fn create(cx: &Context, name: &str) -> Result<(), Error> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.namespace = Some("default".to_owned());
    cx.client().create(&map).await?;
    Ok(())
}

/// Makes one map for each of six names, in the order of a `HashMap`.
async fn scatter(_: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    let names = ["a", "b", "c", "d", "e", "f"];
    let names: HashMap<&str, ()> = names.into_iter().map(|name| (name, ())).collect();
    for name in names.keys() {
        if cx
            .client()
            .get::<ConfigMap>(&Key::new("default", name))
            .await?
            .is_none()
        {
            create(&cx, name).await?;
        }
    }
    Ok(Outcome::done())
}

async fn secrets(user: User) -> Result<(), Error> {
    for name in ["one", "two", "three"] {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.namespace = Some("default".to_owned());
        user.create(&secret).await?;
    }
    Ok(())
}

fn campaign() -> Campaign {
    Campaign::new("copy", |process| {
        let controller = Controller::of::<Secret>("copy").workers(2);
        process
            .manager()
            .name("copy")
            .controller(controller.reconciler(from_fn(copy)))
    })
    .cluster(|cluster| cluster.without_controllers())
    .step("create", secrets)
    .without(FaultKind::HumanDelete)
}

fn seeds() -> u64 {
    let asked = std::env::var("KUBEWRIGHT_SIM_SEEDS");
    asked.ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

#[test]
fn same_seeds_give_the_same_runs_in_another_process() {
    let report = campaign().simulate(0..seeds());
    assert!(report.is_clean(), "{report}");
    let line = format!("hash={:016x}", report.hash);
    println!("{line}");
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("the test has a program");
    let child = Command::new(program)
        .args(["--exact", "--nocapture"])
        .arg("same_seeds_give_the_same_runs_in_another_process")
        .env(CHILD, "1")
        .output()
        .expect("the program starts");
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(output.contains(&line), "{line} is not in {output}");
}

#[test]
fn order_of_a_hash_map_is_reported_as_the_first_event_that_differs() {
    let report = Campaign::new("scatter", |process| {
        let controller = Controller::of::<Secret>("scatter").reconciler(from_fn(scatter));
        process.manager().name("scatter").controller(controller)
    })
    .cluster(|cluster| cluster.without_controllers())
    .step("create", secrets)
    .run();
    let [failure] = &report.failures[..] else {
        panic!("{report}")
    };
    let Violation::Diverged { first, second } = &failure.violation else {
        panic!("{report}")
    };
    assert!(
        first.contains("configmaps") && second.contains("configmaps"),
        "{report}"
    );
    assert_ne!(first, second);
}

#[test]
fn plan_that_fails_is_made_as_short_as_it_can_be() {
    // The second of two creations fails for good if the first one was refused: one fault of several is enough.
    let report = Campaign::new("shrink", |process| {
        let controller = Controller::of::<Secret>("shrink").reconciler(from_fn(
            async |secret: Arc<Secret>, cx: Context| {
                if secret.metadata.deletion_timestamp.is_none() {
                    let _ = create(&cx, cx.key().name()).await;
                }
                Ok(Outcome::done())
            },
        ));
        process.manager().name("shrink").controller(controller)
    })
    .cluster(|cluster| cluster.without_controllers())
    .step("create", secrets)
    .only([FaultKind::Refuse, FaultKind::Cut])
    .simulate(0..12);
    assert!(!report.is_clean(), "a lost creation is found: {report}");
    let failure = &report.failures[0];
    assert_eq!(failure.plan.faults.len(), 1, "{failure}");
    assert!(failure.timeline.len() <= 15, "{failure}");
    let html = report.to_html();
    assert!(
        html.contains("FAULT refuse") && !html.contains("<script"),
        "{html}"
    );
    assert_eq!(
        report.to_json()["failures"][0]["replay"],
        failure.token.as_str()
    );
    let plan = failure.token.split_once(':').expect("a name").1;
    assert_eq!(plan.parse::<Plan>().as_ref(), Ok(&failure.plan));
}
