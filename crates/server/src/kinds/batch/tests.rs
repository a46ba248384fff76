use serde_json::{Value, json};

use crate::kinds::strategy;
use crate::kinds::testing::{CONTEXT, create, create_errors, edit_errors, update_errors};

fn job() -> Value {
    json!({
        "metadata": {"name": "j", "namespace": "default", "uid": CONTEXT.uid},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i:1"}],
        }}},
    })
}

fn cron_job() -> Value {
    json!({
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job()["spec"]}},
    })
}

#[test]
fn job_gets_its_defaults_and_labels() {
    let object = create("batch", "Job", job());
    let labels = json!({
        "batch.kubernetes.io/controller-uid": CONTEXT.uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": CONTEXT.uid,
        "job-name": "j",
    });
    let spec = &object["spec"];
    assert_eq!(spec["template"]["metadata"]["labels"], labels);
    assert_eq!(object["metadata"]["labels"], labels);
    assert_eq!(
        spec["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": CONTEXT.uid}})
    );
    for (field, value) in [
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ("manualSelector", json!(false)),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    assert_eq!(object["status"], json!({}));
    assert_eq!(create_errors("batch", "Job", job()), Vec::<String>::new());
}

#[test]
fn jobs_must_end() {
    let mut object = job();
    object["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(
        create_errors("batch", "Job", object),
        [
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""
        ]
    );
}

#[test]
fn generated_labels_are_not_to_be_forged() {
    let mut object = job();
    object["spec"]["template"]["metadata"] = json!({"labels": {"job-name": "other"}});
    let errors = create_errors("batch", "Job", object);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.template.metadata.labels[job-name]: Invalid value: "));
    assert!(errors[0].ends_with(": must be 'j'"));
}

#[test]
fn most_of_a_job_stays() {
    for (field, value, expect) in [
        (
            "completions",
            json!(2),
            "spec.completions: Invalid value: 2: field is immutable",
        ),
        (
            "completionMode",
            json!("Indexed"),
            "spec.completionMode: Invalid value: \"Indexed\": field is immutable",
        ),
    ] {
        let errors = update_errors("batch", "Job", job(), |new| {
            new["spec"][field] = value.clone()
        });
        assert_eq!(errors, [expect]);
    }
    let scale = |new: &mut Value| new["spec"]["parallelism"] = json!(3);
    assert_eq!(
        update_errors("batch", "Job", job(), scale),
        Vec::<String>::new()
    );
    let aim = |new: &mut Value| new["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    let errors = update_errors("batch", "Job", job(), aim);
    assert!(errors[0].starts_with("spec.template: Invalid value: "));
    assert!(errors[0].ends_with(": field is immutable"));
    let mut waiting = create("batch", "Job", job());
    waiting["spec"]["suspend"] = json!(true);
    assert_eq!(
        edit_errors("batch", "Job", waiting, aim),
        Vec::<String>::new()
    );
}

#[test]
fn cron_job_gets_its_defaults() {
    let object = create("batch", "CronJob", cron_job());
    for (field, value) in [
        ("concurrencyPolicy", json!("Allow")),
        ("suspend", json!(false)),
        ("successfulJobsHistoryLimit", json!(3)),
        ("failedJobsHistoryLimit", json!(1)),
    ] {
        assert_eq!(object["spec"][field], value, "{field}");
    }
    let job = &object["spec"]["jobTemplate"]["spec"];
    assert!(
        job["backoffLimit"].is_null(),
        "job defaults come when the job is made"
    );
    assert_eq!(job["template"]["spec"]["dnsPolicy"], "ClusterFirst");
    assert_eq!(
        create_errors("batch", "CronJob", cron_job()),
        Vec::<String>::new()
    );
}

#[test]
fn schedules_and_zones_are_checked() {
    for (field, value, expect) in [
        ("schedule", "", "spec.schedule: Required value"),
        (
            "schedule",
            "* * *",
            "spec.schedule: Invalid value: \"* * *\": expected exactly 5 fields, found 3: [* * *]",
        ),
        (
            "schedule",
            "TZ=UTC * * * * *",
            "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ),
        (
            "timeZone",
            "",
            "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string",
        ),
        (
            "timeZone",
            "../x",
            "spec.timeZone: Invalid value: \"../x\": unknown time zone ../x",
        ),
        (
            "timeZone",
            "Mars/Phobos",
            "spec.timeZone: Invalid value: \"Mars/Phobos\": unknown time zone Mars/Phobos",
        ),
        (
            "timeZone",
            "europe/rome",
            "spec.timeZone: Invalid value: \"europe/rome\": unknown time zone europe/rome",
        ),
        (
            "timeZone",
            "local",
            "spec.timeZone: Invalid value: \"local\": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ),
        (
            "concurrencyPolicy",
            "Maybe",
            "spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ),
    ] {
        let mut object = cron_job();
        object["spec"][field] = json!(value);
        assert_eq!(create_errors("batch", "CronJob", object), [expect]);
    }
    let mut long = cron_job();
    long["metadata"]["name"] = json!("a".repeat(53));
    assert!(
        create_errors("batch", "CronJob", long)[0].ends_with("must be no more than 52 characters")
    );
}

#[test]
fn jobs_leave_their_pods_behind_by_default() {
    let propagation = |kind: &str| strategy("batch", kind).default_propagation;
    assert_eq!(propagation("Job"), crate::kinds::Propagation::Orphan);
    assert_eq!(
        propagation("CronJob"),
        crate::kinds::Propagation::Background
    );
    assert_eq!(
        strategy("batch", "Job")
            .check_field_label("spec.x")
            .map_err(|e| e.to_string()),
        Err("field label \"spec.x\" not supported for Job".to_owned())
    );
}
