//! Conversion between the versions of a kind: those of built-in kinds that are stored at one version and served at
//! two, and those of custom kinds that a webhook converts.

mod webhook;

use kubewright_schema::{Table, TypeId};
use serde_json::{Map, Value, json};

pub(crate) use webhook::ConversionHook;

/// How objects of one version become those of the stored version and back.
pub(crate) struct Conversion {
    stored: &'static str,
    pub(crate) to_storage: fn(&mut Value),
    pub(crate) from_storage: fn(&mut Value),
}

impl Conversion {
    /// The type of the stored version.
    pub(crate) fn stored_type(&self) -> TypeId {
        Table::builtin()
            .named(self.stored)
            .expect("stored versions are built-in types")
    }
}

/// The conversion of a group, version and kind, if it is not the stored one.
pub(crate) fn conversion(group: &str, version: &str, kind: &str) -> Option<&'static Conversion> {
    match (group, version, kind) {
        ("events.k8s.io", "v1", "Event") => Some(&EVENTS),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => Some(&AUTOSCALING_V1),
        _ => None,
    }
}

/// The name of the collection that a resource's objects are in. Events of both groups are the same objects.
pub(crate) fn collection_name(group: &str, plural: &str) -> String {
    match (group, plural) {
        ("events.k8s.io", "events") | ("", _) => plural.to_owned(),
        _ => format!("{group}/{plural}"),
    }
}

static EVENTS: Conversion = Conversion {
    stored: "io.k8s.api.core.v1.Event",
    to_storage: |event| {
        rename(
            event,
            EVENT_FIELDS.iter().map(|(core, group)| (*group, *core)),
        );
        set_type(event, "v1", "Event");
    },
    from_storage: |event| {
        rename(event, EVENT_FIELDS.iter().copied());
        set_type(event, "events.k8s.io/v1", "Event");
    },
};

/// Fields of an Event in the core group and in `events.k8s.io`, where they differ.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

static AUTOSCALING_V1: Conversion = Conversion {
    stored: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
    to_storage: |object| {
        let target = take(object, "spec", "targetCPUUtilizationPercentage");
        if let (Some(target), Some(spec)) = (
            target,
            object.get_mut("spec").and_then(Value::as_object_mut),
        ) {
            spec.insert(
                "metrics".into(),
                json!([cpu_metric("target", "averageUtilization", &target)]),
            );
        }
        let current = take(object, "status", "currentCPUUtilizationPercentage");
        if let (Some(current), Some(status)) = (
            current,
            object.get_mut("status").and_then(Value::as_object_mut),
        ) {
            status.insert(
                "currentMetrics".into(),
                json!([cpu_metric("current", "averageUtilization", &current)]),
            );
        }
        set_type(object, "autoscaling/v2", "HorizontalPodAutoscaler");
    },
    from_storage: |object| {
        let metrics = take(object, "spec", "metrics");
        let target = metrics.as_ref().and_then(|m| cpu_value(m, "target"));
        if let (Some(target), Some(spec)) = (
            target,
            object.get_mut("spec").and_then(Value::as_object_mut),
        ) {
            spec.insert("targetCPUUtilizationPercentage".into(), target);
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("behavior");
        }
        let current = take(object, "status", "currentMetrics")
            .as_ref()
            .and_then(|m| cpu_value(m, "current"));
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("conditions");
            // Version 1 always tells this number, version 2 leaves out a zero.
            status.entry("currentReplicas").or_insert(json!(0));
            if let Some(current) = current {
                status.insert("currentCPUUtilizationPercentage".into(), current);
            }
        }
        set_type(object, "autoscaling/v1", "HorizontalPodAutoscaler");
    },
};

fn cpu_metric(side: &str, field: &str, value: &Value) -> Value {
    let mut measured = Map::from_iter([(field.to_owned(), value.clone())]);
    if side == "target" {
        measured.insert("type".into(), json!("Utilization"));
    }
    json!({ "type": "Resource", "resource": { "name": "cpu", side: measured } })
}

fn cpu_value(metrics: &Value, side: &str) -> Option<Value> {
    let cpu = metrics
        .as_array()?
        .iter()
        .find(|m| m["resource"]["name"] == "cpu")?;
    cpu["resource"][side].get("averageUtilization").cloned()
}

fn take(object: &mut Value, part: &str, field: &str) -> Option<Value> {
    object.get_mut(part)?.as_object_mut()?.remove(field)
}

fn rename<'a>(object: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

fn set_type(object: &mut Value, api_version: &str, kind: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), json!(api_version));
        fields.insert("kind".into(), json!(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_keep_their_meaning_in_both_groups() {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "n",
            "regarding": {"kind": "Pod"}, "reportingController": "c", "eventTime": "t", "action": "a"
        });
        let original = event.clone();
        (EVENTS.to_storage)(&mut event);
        assert_eq!(event["message"], "n");
        assert_eq!(event["involvedObject"]["kind"], "Pod");
        assert_eq!(event["reportingComponent"], "c");
        (EVENTS.from_storage)(&mut event);
        assert_eq!(event, original);
    }

    #[test]
    fn autoscalers_of_version_one_scale_on_cpu() {
        let mut object = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}, "status": {"currentReplicas": 1}
        });
        let original = object.clone();
        (AUTOSCALING_V1.to_storage)(&mut object);
        assert_eq!(
            object["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
            80
        );
        (AUTOSCALING_V1.from_storage)(&mut object);
        assert_eq!(object, original);
        let mut stored = json!({"spec": {}, "status": {"desiredReplicas": 0}});
        (AUTOSCALING_V1.from_storage)(&mut stored);
        assert_eq!(stored["status"]["currentReplicas"], 0);
    }
}
