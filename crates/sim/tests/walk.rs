//! The property walk finds what an operator does wrong with a property, and is silent about one that does it right.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResource;
use kubewright_runtime::{
    Cleanup, Context, Controller, Delete, Error, IgnoreNotFound, Outcome, Reconciler,
};
use kubewright_sim::{Campaign, FaultKind, Walk, WalkReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What people ask for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(group = "walk.dev", version = "v1", kind = "Page", namespaced)]
#[serde(rename_all = "camelCase")]
struct PageSpec {
    /// The title of the page.
    #[schemars(length(min = 1, max = 20))]
    title: String,
    /// The number of columns, none for as many as fit.
    #[schemars(range(min = 1, max = 4))]
    columns: Option<i32>,
    /// Hosts that serve the page, in the order in which they are tried.
    #[serde(default)]
    hosts: Vec<String>,
    /// Headers of the answer.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A note for people, which means nothing to the operator.
    comment: Option<String>,
}

/// What an operator does with the properties of a page.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Fixed,
    /// Fills in columns where there are some, and leaves them where there are none any more.
    Sticky,
    /// Writes whenever it looks.
    Restless,
    /// Panics at the largest number of columns.
    Panics,
}

struct Publisher(Form);

impl Reconciler<Page> for Publisher {
    async fn reconcile(&self, page: Arc<Page>, cx: &Context) -> Result<Outcome, Error> {
        match self.0 {
            Form::Panics if page.spec.columns == Some(4) => panic!("no room for four columns"),
            Form::Fixed if page.spec.columns == Some(4) => {
                return Err(Error::terminal("no room for four columns"));
            }
            _ => {}
        }
        let fill = |map: &mut ConfigMap| {
            publish(&page.spec, self.0, map.data.get_or_insert_default());
            if self.0 == Form::Restless {
                let now = cx.now().as_millisecond().to_string();
                map.data
                    .get_or_insert_default()
                    .insert("published.at".to_owned(), now);
            }
            Ok(())
        };
        cx.client().create_or_update(cx.key(), fill).await?;
        match self.0 {
            Form::Restless => Ok(Outcome::requeue_after(Duration::from_secs(90))),
            _ => Ok(Outcome::done()),
        }
    }

    async fn cleanup(&self, _: Arc<Page>, cx: &Context) -> Result<Cleanup<Outcome>, Error> {
        if let Some(map) = cx.client().get::<ConfigMap>(cx.key()).await? {
            let deleted = cx.client().delete(&*map, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        Ok(Cleanup::Done)
    }
}

fn publish(spec: &PageSpec, form: Form, data: &mut BTreeMap<String, String>) {
    match spec.columns {
        Some(columns) => drop(data.insert("columns".to_owned(), columns.to_string())),
        None if form == Form::Sticky => {}
        None => drop(data.remove("columns")),
    }
    data.insert("title".to_owned(), spec.title.clone());
    data.insert("hosts".to_owned(), spec.hosts.join(" "));
    data.insert("headers".to_owned(), format!("{:?}", spec.headers));
}

fn walk(form: Form) -> Walk {
    let campaign = Campaign::new("page", move |process| {
        let controller = Controller::of::<Page>("page")
            .finalizer("walk.dev/page")
            .reconciler(Publisher(form));
        process.manager().name("page").controller(controller)
    })
    .cluster(|cluster| cluster.without_controllers())
    .mask("data.published.at");
    Walk::new::<Page>(campaign)
}

fn oracles(report: &WalkReport) -> Vec<&'static str> {
    let mut oracles: Vec<_> = report.failures.iter().map(|it| it.oracle).collect();
    oracles.sort_unstable();
    oracles.dedup();
    oracles
}

#[test]
fn operator_that_does_it_right_is_walked_to_the_end() {
    let report = walk(Form::Fixed).check();
    assert_eq!((report.changed, report.properties), (5, 5));
    assert_eq!(report.without_effect, ["spec.comment"]);
    assert!(report.refused >= 9, "{report}");
    // A value that cannot be had is an error that the operator recovers from.
    let impossible = ["set spec.columns: 4".to_owned()];
    assert_eq!(report.error_states, impossible, "{report}");
}

#[test]
fn property_that_stays_when_it_is_removed_is_found_and_replayed() {
    let report = walk(Form::Sticky).run();
    assert_eq!(
        oracles(&report),
        ["W2 as in a new cluster", "W3 taking back restores"]
    );
    let all = report.failures.iter();
    let columns = all.filter(|failure| failure.what.contains("data.columns"));
    assert_eq!(columns.count(), report.failures.len(), "{report}");
    assert!(report.failures[0].token.starts_with("page:walk:0:"));

    let directory = tempfile::tempdir().expect("there is room");
    report.write(directory.path()).expect("it can be written");
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name));
    let json = read("page.json").expect("it is written");
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["failures"][0]["replay"], report.failures[0].token);
    let html = read("page.html").expect("it is written");
    let failed = format!("{} failed;", report.failures.len());
    assert!(html.contains(&failed), "{html}");
    assert!(html.contains(&report.failures[0].token), "{html}");
}

/// The variable that starts [`walk_is_checked_in_a_new_process`].
const STARTED: &str = "KUBEWRIGHT_WALK_STARTED";

#[test]
fn operator_is_run_for_the_token_of_its_own_walk_alone() {
    let program = std::env::current_exe().expect("the test has a program");
    let check = |token: &str, expected: &str| {
        let output = Command::new(&program)
            .args(["--exact", "walk_is_checked_in_a_new_process", "--nocapture"])
            .env(STARTED, "1")
            .env("KUBEWRIGHT_REPLAY", token)
            .output()
            .expect("the test starts again");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{token}: {text}");
        assert!(text.contains(expected), "{token}: {text}");
    };
    check("page:walk:0:1", "5 properties, 1 steps run");
    check("page-faults:crash-after:x", "5 properties, 0 steps run");
    check(
        "page-faults:crash-after:x",
        "page: KUBEWRIGHT_REPLAY is about page-faults",
    );
}

/// Checks a walk when it is started for that; see [`operator_is_run_for_the_token_of_its_own_walk_alone`].
#[test]
fn walk_is_checked_in_a_new_process() {
    if std::env::var_os(STARTED).is_none() {
        return;
    }
    let report = walk(Form::Fixed).check();
    println!("{} properties, {} steps run", report.changed, report.run);
}

#[test]
fn panic_at_one_value_is_found() {
    let report = walk(Form::Panics).run();
    let found = report
        .failures
        .iter()
        .find(|it| it.oracle.starts_with("O1"));
    let found = found.expect("the panic is found");
    assert_eq!(found.step, "set spec.columns: 4");
}

#[test]
fn writes_in_quiet_time_are_found() {
    let report = walk(Form::Restless).sample(1).run();
    assert!(
        oracles(&report).contains(&"O5 quiet time is silent"),
        "{report}"
    );
}

#[test]
fn steps_of_a_walk_are_the_workload_of_a_campaign() {
    let campaign = walk(Form::Fixed).into_campaign(3);
    // It does not watch its maps, so it does not notice what people do with them.
    let campaign = campaign
        .without(FaultKind::HumanEdit)
        .without(FaultKind::HumanDelete);
    let report = campaign.sample(12).run();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.plans, 12);
}

/// A setting of a program.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(group = "walk.dev", version = "v1", kind = "Setting", namespaced)]
struct SettingSpec {
    /// Whether the setting applies.
    enabled: bool,
    /// The name of the setting, which stays what it is.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "field is immutable"}]))]
    key: String,
    /// The values to choose from.
    #[serde(default)]
    variants: Vec<String>,
}

/// Publishes a setting as a ConfigMap.
struct Settings;

impl Reconciler<Setting> for Settings {
    async fn reconcile(&self, setting: Arc<Setting>, cx: &Context) -> Result<Outcome, Error> {
        let fill = |map: &mut ConfigMap| {
            let data = map.data.get_or_insert_default();
            data.insert("setting".to_owned(), format!("{:?}", setting.spec));
            Ok(())
        };
        cx.client().create_or_update(cx.key(), fill).await?;
        Ok(Outcome::done())
    }

    async fn cleanup(&self, _: Arc<Setting>, cx: &Context) -> Result<Cleanup<Outcome>, Error> {
        if let Some(map) = cx.client().get::<ConfigMap>(cx.key()).await? {
            let deleted = cx.client().delete(&*map, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        Ok(Cleanup::Done)
    }
}

/// The walk makes the object anew to change the key. The workload is of one object.
#[test]
fn workload_of_a_kind_with_an_immutable_property_leaves_that_as_it_is() {
    let operator = |name| {
        Campaign::new(name, |process| {
            let controller = Controller::of::<Setting>("setting")
                .finalizer("walk.dev/setting")
                .reconciler(Settings);
            process.manager().name("setting").controller(controller)
        })
        .cluster(|cluster| cluster.without_controllers())
    };
    for changes in 1..8 {
        let campaign = Walk::new::<Setting>(operator("setting")).into_campaign(changes);
        let report = campaign.only([FaultKind::Restart]).run();
        assert!(report.is_clean(), "{changes} changes: {report}");
        assert!(report.plans >= 3, "{changes} changes: {report}");
    }
    let report = Walk::new::<Setting>(operator("setting-walk")).run();
    assert_eq!((report.changed, report.properties), (3, 3), "{report}");
}

/// The kind of the example `fruit`, which nobody reconciles.
#[test]
fn every_property_of_a_fruit_is_changed_and_what_is_forbidden_refused() {
    let text = include_str!("../../../examples/fruit/crd.yaml");
    let definition: CustomResourceDefinition =
        serde_saphyr::from_str(text).expect("it is a definition");
    let report = Walk::of_definition("fruit", &definition).check();
    assert_eq!((report.changed, report.properties), (3, 3), "{report}");
    assert!(report.refused >= 6, "{report}");
}
