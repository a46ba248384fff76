//! Autoscalers and the scale of anything that has one.

use serde_json::Value;

use super::{Entry, entry, metrics};
use crate::printers::column::{AGE, Column, NAME, integer, text as column};
use crate::printers::view::{View, scalar};

const AUTOSCALER: &[Column] = &[
    NAME,
    column("Reference"),
    column("Targets"),
    column("MinPods"),
    column("MaxPods"),
    column("Replicas"),
    AGE,
];

const SCALE: &[Column] = &[
    column("Name"),
    integer("Desired"),
    integer("Available"),
    AGE,
];

pub(super) const KINDS: &[Entry] = &[
    entry(
        "autoscaling",
        "HorizontalPodAutoscaler",
        AUTOSCALER,
        autoscaler,
    ),
    entry("autoscaling", "Scale", SCALE, scale),
];

fn autoscaler(view: &View<'_>) -> Vec<Value> {
    let reference = format!(
        "{}/{}",
        view.text("spec.scaleTargetRef.kind"),
        view.text("spec.scaleTargetRef.name")
    );
    let minimum = scalar(view.object, "spec.minReplicas");
    cells![
        view.name(),
        reference,
        metrics::targets(view),
        minimum.unwrap_or_else(|| "<unset>".to_owned()),
        view.int("spec.maxReplicas"),
        view.int("status.currentReplicas"),
        view.age(),
    ]
}

fn scale(view: &View<'_>) -> Vec<Value> {
    cells![
        view.name(),
        view.int("spec.replicas"),
        view.int("status.replicas"),
        view.age(),
    ]
}
