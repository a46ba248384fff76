//! Pods and templates for the tests of controllers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, ObjectMeta, OwnerReference, Time,
};

/// A moment, in seconds after an arbitrary one.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).expect("tests stay near the epoch")
}

/// Labels from pairs.
pub(crate) fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    owned.collect()
}

/// A selector for labels.
pub(crate) fn selector(pairs: &[(&str, &str)]) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels(pairs)),
        ..LabelSelector::default()
    }
}

/// Metadata as the server would have it. The uid is made from the name.
pub(crate) fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some(format!("uid-{name}")),
        labels: Some(labels(&[("app", "web")])),
        creation_timestamp: Some(Time(at(0))),
        generation: Some(1),
        ..ObjectMeta::default()
    }
}

/// A template whose pods are labelled `app=web` and run `image`.
pub(crate) fn template(image: &str) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(&[("app", "web")])),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "main".to_owned(),
                image: Some(image.to_owned()),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
    }
}

/// A pod that was created at 0, runs on `node` and is not ready.
pub(crate) fn running(name: &str, node: &str) -> Pod {
    let spec = PodSpec {
        node_name: (!node.is_empty()).then(|| node.to_owned()),
        ..PodSpec::default()
    };
    Pod {
        metadata: metadata(name),
        spec: Some(spec),
        status: Some(PodStatus {
            phase: Some("Running".to_owned()),
            ..PodStatus::default()
        }),
    }
}

/// A pod that nobody has placed yet.
pub(crate) fn pending(name: &str) -> Pod {
    in_phase(running(name, ""), "Pending")
}

/// The pod in another phase.
pub(crate) fn in_phase(mut pod: Pod, phase: &str) -> Pod {
    pod.status.get_or_insert_default().phase = Some(phase.to_owned());
    pod
}

/// The pod, ready since a moment.
pub(crate) fn ready(mut pod: Pod, since: Timestamp) -> Pod {
    pod.status.get_or_insert_default().conditions = Some(vec![PodCondition {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        last_transition_time: Some(Time(since)),
        ..PodCondition::default()
    }]);
    pod
}

/// The pod, not ready any more.
pub(crate) fn unready(mut pod: Pod) -> Pod {
    pod.status.get_or_insert_default().conditions = None;
    pod
}

/// The pod, on its way out.
pub(crate) fn terminating(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(at(0)));
    pod
}

/// The pod, controlled by somebody.
pub(crate) fn owned(mut pod: Pod, owner: OwnerReference) -> Pod {
    pod.metadata.owner_references = Some(vec![owner]);
    pod
}

/// The value of a label of a pod, or nothing.
pub(crate) fn label_of<'a>(pod: &'a Pod, key: &str) -> &'a str {
    super::label(&pod.metadata, key).unwrap_or_default()
}
