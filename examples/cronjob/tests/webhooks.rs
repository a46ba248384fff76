//! What becomes of CronJobs, sentence by sentence.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright::testing::sim::Walk;
use kubewright::webhook::Spoke;
use kubewright_example_cronjob::v1::{ConcurrencyPolicy, CronJob};
use kubewright_example_cronjob::v2;
use proptest::prelude::*;
use serde_json::{Value, json};

fn spec(schedule: Value) -> Value {
    json!({"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": {
        "containers": [{"name": "hello", "image": "busybox"}], "restartPolicy": "OnFailure",
    }}}}})
}

fn one(name: &str, schedule: &str) -> CronJob {
    let spec = serde_json::from_value(spec(json!(schedule))).expect("a spec");
    let mut job = CronJob::new(name, spec);
    job.metadata.namespace = Some("default".to_owned());
    job
}

fn two(name: &str, schedule: Value) -> v2::CronJob {
    let spec = serde_json::from_value(spec(schedule)).expect("a spec");
    let mut job = v2::CronJob::new(name, spec);
    job.metadata.namespace = Some("default".to_owned());
    job
}

/// The whole of an error, with what caused it.
fn whole(error: ClientError) -> String {
    Error::from(error).report()
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

#[tokio::test]
async fn what_is_left_out_is_filled_in() {
    let world = World::start().await;
    let mut given = one("given", "* * * * *");
    given.spec.rest.suspend = Some(true);
    let rest = world
        .client
        .create(&given)
        .await
        .expect("it is stored")
        .spec
        .rest;
    assert_eq!(rest.concurrency_policy, Some(ConcurrencyPolicy::Allow));
    assert_eq!(
        (rest.suspend, rest.starting_deadline_seconds),
        (Some(true), None)
    );
    assert_eq!(rest.successful_jobs_history_limit, Some(3));
    assert_eq!(rest.failed_jobs_history_limit, Some(1));
}

#[tokio::test]
async fn what_is_wrong_is_refused_and_all_of_it_is_said() {
    let world = World::start().await;
    let name = "a".repeat(53);
    let refused = world.client.create(&one(&name, "0 25 * * *")).await;
    let refused = refused.expect_err("two things are wrong");
    assert!(refused.is_invalid());
    let details = refused.status().and_then(|status| status.details.as_ref());
    let causes = details.into_iter().flat_map(|details| &details.causes);
    let fields: Vec<&str> = causes.map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, ["metadata.name", "spec.schedule"]);
    let refused = whole(refused);
    assert!(refused.contains("no more than 52 characters"), "{refused}");
    assert!(refused.contains("hour \"25\""), "{refused}");

    let stored = world
        .client
        .create(&one("right", "0 5 * * *"))
        .await
        .expect("it is stored");
    let wrong = world
        .client
        .modify(&stored, |job| job.spec.schedule = "nonsense".to_owned());
    assert!(wrong.await.is_err(), "a change is judged too");
}

#[tokio::test]
async fn objects_are_stored_as_one_version_and_shown_in_both() {
    let world = World::start().await;
    let posted = two("nightly", json!({"minute": "0", "hour": "3"}));
    let posted = world.client.create(&posted).await.expect("it is stored");
    // The webhooks are about version 1 and were asked all the same.
    assert_eq!(posted.spec.rest.suspend, Some(false));
    let live = world.client.live();
    let stored: CronJob = live
        .get(&key("nightly"))
        .await
        .expect("an answer")
        .expect("it is there");
    assert_eq!(stored.spec.schedule, "0 3 * * *");
    assert_eq!(stored.metadata.uid, posted.metadata.uid);

    let wrong = two("wrong", json!({"minute": "61"}));
    let refused = world.client.create(&wrong).await;
    let refused = whole(refused.expect_err("it is judged"));
    assert!(refused.contains("minute \"61\""), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_gets_lost_on_the_way_there_and_back(
        parts in prop::array::uniform5(prop::option::of("[0-9]{1,2}(-[0-9]{1,2})?(/[1-9])?")),
        suspend in prop::option::of(any::<bool>()),
    ) {
        let [minute, hour, day, month, weekday] = parts;
        let schedule = json!({
            "minute": minute, "hour": hour, "dayOfMonth": day, "month": month, "dayOfWeek": weekday,
        });
        let mut job = two("a", schedule);
        job.spec.rest.suspend = suspend;
        let hub = job.clone().to_hub().map_err(TestCaseError::fail)?;
        let back = v2::CronJob::from_hub(hub).map_err(TestCaseError::fail)?;
        prop_assert_eq!(back.spec, job.spec);
    }
}

/// The schemas alone: what the webhooks refuse is above. The template of a Pod has a thousand properties, which are the same in
/// both versions and take a minute; `KUBEWRIGHT_SIM=full` walks them too.
#[test]
fn every_property_of_both_versions_is_changed() {
    let mut second = v2::CronJob::crd();
    second.spec.versions[0].storage = true;
    let is_full = std::env::var("KUBEWRIGHT_SIM").is_ok_and(|volume| volume == "full");
    for (name, definition) in [("cronjob-v1", CronJob::crd()), ("cronjob-v2", second)] {
        let definition = if is_full {
            definition
        } else {
            without_template(&definition)
        };
        let report = Walk::of_definition(name, &definition).check();
        assert_eq!(report.changed, report.properties, "{report}");
        assert!(report.properties > 20, "{report}");
        assert!(report.refused > report.properties, "{report}");
    }
}

fn without_template(definition: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut definition = serde_json::to_value(definition).expect("it is JSON");
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/jobTemplate\
                   /properties/spec/properties/template";
    let template = definition.pointer_mut(pointer);
    *template.expect("Jobs have a template") =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(definition).expect("it is a definition")
}
