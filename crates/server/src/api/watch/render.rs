//! The events of a watch in the representation that the client asked for.

use bytes::Bytes;
use serde_json::Value;

use crate::api::call::Call;
use crate::core::Core;
use crate::http::accept::Representation;
use crate::http::respond;
use crate::printers::{self, Headers, MetaVersion, Options};
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{Delivery, Event, Record};

/// Writes events in the representation that the client asked for.
pub(super) enum Renderer {
    Object,
    PartialMetadata(MetaVersion),
    Table { options: Options, headers: Headers },
}

impl Renderer {
    pub(super) fn new(call: &Call) -> Result<Self, ApiError> {
        Ok(match call.accept.representation {
            Representation::Object | Representation::Discovery(_) => Renderer::Object,
            Representation::PartialMetadata(version) => Renderer::PartialMetadata(version),
            Representation::Table(version) => Renderer::Table {
                options: call.table_options(version)?,
                headers: Headers::Shown,
            },
        })
    }

    /// Kind and version of what is sent.
    pub(super) fn object_type(&self, served: &Served) -> (String, String) {
        match self {
            Renderer::Object => (served.resource.kind.to_string(), served.api_version.clone()),
            Renderer::PartialMetadata(version) => {
                ("PartialObjectMetadata".into(), version.api_version().into())
            }
            Renderer::Table { options, .. } => {
                ("Table".into(), options.version.api_version().into())
            }
        }
    }

    /// An object that was there when the watch began.
    pub(super) fn initial(&mut self, core: &Core, served: &Served, record: &Record) -> Bytes {
        let body = served.body(record);
        self.render(core, served, "ADDED", body)
    }

    /// Something that happened.
    pub(super) fn event(
        &mut self,
        core: &Core,
        served: &Served,
        event: &Event,
        delivery: Delivery,
    ) -> Bytes {
        if matches!(self, Renderer::Object) && !served.must_revive(event.revision()) {
            return event.frame(delivery);
        }
        let body = served.present(event.body(delivery), event.revision());
        self.render(core, served, delivery.as_str(), body)
    }

    fn render(
        &mut self,
        core: &Core,
        served: &Served,
        kind: &str,
        body: Result<Bytes, ApiError>,
    ) -> Bytes {
        match body.and_then(|body| self.represent(core, served, body)) {
            Ok(object) => frame(kind, &object),
            Err(error) => error_frame(&error),
        }
    }

    fn represent(&mut self, core: &Core, served: &Served, body: Bytes) -> Result<Bytes, ApiError> {
        match self {
            Renderer::Object => Ok(body),
            Renderer::PartialMetadata(version) => {
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                Ok(printers::partial_metadata(&object, *version).into())
            }
            Renderer::Table { options, headers } => {
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                let now = core.environment.now();
                // Only the first event describes the columns.
                let headers = std::mem::replace(headers, Headers::Omitted);
                Ok(served
                    .printer
                    .single(*options, headers, &object, &body, now)
                    .into())
            }
        }
    }
}

/// One event of the stream.
pub(super) fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(object.len() + 40);
    frame.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    frame.into()
}

/// The event that ends a watch.
pub(super) fn error_frame(error: &ApiError) -> Bytes {
    frame(
        "ERROR",
        &respond::encode_typed(respond::STATUS, &error.to_value()),
    )
}
