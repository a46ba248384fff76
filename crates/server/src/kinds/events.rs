//! Events, in the words of the core group and of `events.k8s.io`.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::checks::{Errors, immutable, invalid_each};
use super::meta;
use super::name_rule::NameRule;
use super::path::Path;
use super::strategy::{FieldLabels, Propagation, Strategy};
use super::value::{is_empty, text};

const PLAIN: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    allow_create_on_update: true,
    default_propagation: Propagation::Unsupported,
    ..Strategy::PLAIN
};

/// Events of the core group.
pub(super) static CORE_EVENT: Strategy = Strategy {
    field_labels: FieldLabels::Listed(&[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
        "metadata.namespace",
        "metadata.name",
    ]),
    validate: |object, errors| validate(object, &CORE, errors),
    fields: |object| fields(object, &CORE),
    ..PLAIN
};

/// Events of `events.k8s.io`.
pub(super) static EVENT: Strategy = Strategy {
    field_labels: FieldLabels::Listed(&[
        "reason",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reportingController",
        "type",
        "metadata.namespace",
        "metadata.name",
    ]),
    validate: |object, errors| validate(object, &MODERN, errors),
    validate_create_only: validate_modern_create,
    validate_update: validate_modern_update,
    fields: |object| fields(object, &MODERN),
    ..PLAIN
};

/// What one group calls the fields they share, and how the server names them in errors.
struct Words {
    about: &'static str,
    reporter: &'static str,
    source: &'static str,
    message: &'static str,
}

const CORE: Words = Words {
    about: "involvedObject",
    reporter: "reportingComponent",
    source: "source",
    message: "message",
};

const MODERN: Words = Words {
    about: "regarding",
    reporter: "reportingController",
    source: "deprecatedSource",
    message: "note",
};

const ABOUT: [&str; 7] = [
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
];

const CORE_ABOUT: [&str; 7] = [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
];

const MODERN_ABOUT: [&str; 7] = [
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
];

/// What selectors see of an event, in the words of both groups: it is the same object, whichever of them wrote it
/// (pkg/registry/core/event/strategy.go: `ToSelectableFields`).
fn fields(object: &Value, words: &Words) -> Vec<(&'static str, String)> {
    let reference = &object[words.about];
    let mut fields = about(reference, CORE_ABOUT);
    fields.extend(about(reference, MODERN_ABOUT));
    let reporter = text(&object[words.reporter]);
    let source = match text(&object[words.source]["component"]) {
        "" => reporter,
        component => component,
    };
    fields.push(("reportingComponent", reporter.to_owned()));
    fields.push(("reportingController", reporter.to_owned()));
    fields.push(("source", source.to_owned()));
    fields.extend(common(object));
    fields
}

fn about(reference: &Value, labels: [&'static str; 7]) -> Vec<(&'static str, String)> {
    ABOUT
        .iter()
        .zip(labels)
        .map(|(field, label)| (label, text(&reference[*field]).to_owned()))
        .collect()
}

fn common(object: &Value) -> [(&'static str, String); 2] {
    ["reason", "type"].map(|field| (field, text(&object[field]).to_owned()))
}

fn validate(object: &Value, words: &Words, errors: &mut Errors) {
    let namespace = text(&object["metadata"]["namespace"]);
    let about = text(&object[words.about]["namespace"]);
    let old_style = is_empty(&object["eventTime"]);
    let mismatch = match (old_style, about) {
        (true, "") => !matches!(namespace, "" | "default"),
        (true, _) => namespace != about,
        (false, "") => !matches!(namespace, "default" | "kube-system"),
        (false, _) => false,
    };
    if mismatch {
        let text = "does not match event.namespace";
        errors.push(FieldError::invalid(
            "involvedObject.namespace",
            &about.into(),
            text,
        ));
    }
    if !old_style {
        validate_reported(object, words, errors);
    }
}

fn validate_reported(object: &Value, words: &Words, errors: &mut Errors) {
    let reporter = text(&object[words.reporter]);
    let path = Path::Root(words.reporter);
    if reporter.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    invalid_each(names::qualified_name(reporter), reporter, &path, errors);
    for field in ["reportingInstance", "action", "reason"] {
        let length = text(&object[field]).len();
        if length == 0 {
            errors.push(FieldError::required(field, ""));
        }
        if length > 128 {
            let text = "can have at most 128 characters";
            errors.push(FieldError::invalid(field, &"".into(), text));
        }
    }
    if text(&object[words.message]).len() > 1024 {
        let text = "can have at most 1024 characters";
        errors.push(FieldError::invalid("message", &"".into(), text));
    }
}

fn validate_modern_create(object: &Value, errors: &mut Errors) {
    let scope = kubewright_schema::catalog::Scope::Namespaced;
    meta::validate(object, scope, NameRule::Subdomain, errors);
    validate_series(object, errors);
    if is_empty(&object["eventTime"]) {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text(&object["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let text = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid("type", &"".into(), &text));
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        let value = &object[field];
        if !is_empty(value) && value.as_i64() != Some(0) {
            errors.push(FieldError::invalid(shown, &"".into(), "needs to be unset"));
        }
    }
}

fn validate_series(object: &Value, errors: &mut Errors) {
    let series = &object["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or(0) < 2 {
        let text = "should be at least 2";
        errors.push(FieldError::invalid("series.count", &"".into(), text));
    }
    if is_empty(&series["lastObservedTime"]) {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

fn validate_modern_update(new: &Value, old: &Value, errors: &mut Errors) {
    if new["series"] != old["series"] {
        validate_series(new, errors);
    }
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        immutable(&new[field], &old[field], &Path::Root(shown), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::{create_errors, update_errors};

    #[test]
    fn core_events_belong_to_the_namespace_of_their_object() {
        let event = |namespace: &str| {
            json!({
                "metadata": {"name": "e", "namespace": "d"},
                "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p"},
            })
        };
        assert_eq!(create_errors("", "Event", event("d")), Vec::<String>::new());
        assert_eq!(
            create_errors("", "Event", event("x")),
            ["involvedObject.namespace: Invalid value: \"x\": does not match event.namespace"]
        );
    }

    #[test]
    fn modern_events_say_who_did_what() {
        let event = json!({
            "metadata": {"name": "e", "namespace": "d"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "ex.io/c", "reportingInstance": "c-1",
            "action": "Sync", "reason": "Synced", "type": "Normal",
            "regarding": {"kind": "Pod", "namespace": "d", "name": "p"},
        });
        let group = "events.k8s.io";
        assert_eq!(
            create_errors(group, "Event", event.clone()),
            Vec::<String>::new()
        );
        let mut vague = event.clone();
        vague["action"] = json!("");
        assert_eq!(
            create_errors(group, "Event", vague),
            ["action: Required value"]
        );
        let fields = EVENT.selectable_fields(&event);
        assert!(fields.contains(&("regarding.name", "p".to_owned())));
        let errors = update_errors(group, "Event", event, |new| new["note"] = json!("x"));
        assert_eq!(
            errors,
            ["message: Invalid value: \"x\": field is immutable"]
        );
    }
}
