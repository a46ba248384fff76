//! Events as each of the two APIs has them.

use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource};
use k8s_openapi::api::events::v1::Event as SeriesEvent;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use serde_json::{Value, json};

use super::RecorderOptions;
use super::correlator::Record;

/// A new event of `v1`.
pub(super) fn core(record: &Record, options: &RecorderOptions) -> CoreEvent {
    let occurrence = &record.occurrence;
    CoreEvent {
        metadata: metadata(record),
        involved_object: occurrence.reference.clone(),
        type_: Some(occurrence.kind.as_str().into()),
        reason: Some(occurrence.reason.clone()),
        message: Some(occurrence.message.clone()),
        action: occurrence.action.as_deref().map(str::to_owned),
        related: occurrence.related.as_deref().cloned(),
        count: Some(record.count),
        first_timestamp: Some(Time(record.first)),
        last_timestamp: Some(Time(record.last)),
        source: Some(EventSource {
            component: Some(component(record, options).to_owned()),
            host: occurrence.host.as_deref().map(str::to_owned),
        }),
        reporting_component: Some(component(record, options).to_owned()),
        reporting_instance: Some(instance(record, options)),
        ..CoreEvent::default()
    }
}

/// The count of an event of `v1`.
pub(super) fn core_patch(record: &Record) -> Value {
    json!({
        "count": record.count,
        "lastTimestamp": Time(record.last),
        "message": record.occurrence.message,
    })
}

/// A new event of `events.k8s.io/v1`. What was done is the reason for it, unless the recorder says otherwise.
pub(super) fn series(record: &Record, options: &RecorderOptions) -> SeriesEvent {
    let occurrence = &record.occurrence;
    let action = occurrence.action.as_deref().unwrap_or(&occurrence.reason);
    SeriesEvent {
        metadata: metadata(record),
        event_time: Some(MicroTime(record.first)),
        regarding: Some(occurrence.reference.clone()),
        type_: Some(occurrence.kind.as_str().into()),
        reason: Some(occurrence.reason.clone()),
        action: Some(action.to_owned()),
        related: occurrence.related.as_deref().cloned(),
        note: Some(occurrence.message.clone()),
        reporting_controller: Some(component(record, options).to_owned()),
        reporting_instance: Some(instance(record, options)),
        ..SeriesEvent::default()
    }
}

/// The series of an event of `events.k8s.io/v1`, whose note cannot change.
pub(super) fn series_patch(record: &Record) -> Value {
    json!({
        "series": {"count": record.count, "lastObservedTime": MicroTime(record.last)},
    })
}

/// Who reports: the component of the recorder, if it has one of its own.
pub(super) fn component<'a>(record: &'a Record, options: &'a RecorderOptions) -> &'a str {
    let own = record.occurrence.component.as_deref();
    own.unwrap_or(&options.component)
}

/// Which of the component's processes reports: the one on the event's machine, if it names one.
fn instance(record: &Record, options: &RecorderOptions) -> String {
    let host = record.occurrence.host.as_deref();
    host.unwrap_or(&options.instance).to_owned()
}

fn metadata(record: &Record) -> ObjectMeta {
    ObjectMeta {
        name: Some(record.name.clone()),
        namespace: Some(record.namespace.clone()),
        ..ObjectMeta::default()
    }
}
