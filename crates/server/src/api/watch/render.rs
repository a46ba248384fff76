//! The events of a watch in the representation and format that the client asked for.

use bytes::Bytes;
use kubewright_schema::protobuf::watch_frame;
use serde_json::Value;

use crate::api::call::Call;
use crate::core::Core;
use crate::http::accept::{Format, Representation};
use crate::http::respond;
use crate::printers::{self, Headers, MetaVersion, Options, Row};
use crate::resource::{Nature, Served};
use crate::status::ApiError;

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

    pub(super) fn represent(
        &mut self,
        core: &Core,
        served: &Served,
        body: Bytes,
    ) -> Result<Bytes, ApiError> {
        match self {
            Renderer::Object => Ok(body),
            Renderer::PartialMetadata(version) => {
                let partial = match &served.nature {
                    Nature::Builtin(_) => printers::metadata_of_bytes(&body, *version),
                    Nature::Custom(_) => serde_json::from_slice(&body)
                        .map(|object: Value| printers::partial_metadata(&object, *version)),
                };
                Ok(partial.map_err(ApiError::internal)?.into())
            }
            Renderer::Table { options, headers } => {
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                let now = core.environment.now();
                // Only the first event describes the columns.
                let headers = std::mem::replace(headers, Headers::Omitted);
                let row = Row {
                    object: &object,
                    bytes: &body,
                };
                Ok(served.printer.single(*options, headers, row, now).into())
            }
        }
    }
}

/// How events follow each other on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One line each.
    Json,
    /// Protobuf after its length.
    Protobuf,
}

impl Framing {
    pub(super) fn of(call: &Call) -> Self {
        match call.accept.format {
            Format::Protobuf => Framing::Protobuf,
            Format::Json | Format::PrettyJson | Format::Yaml => Framing::Json,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Framing::Json => "application/json",
            Framing::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// An event with an object that is compact JSON.
    pub(super) fn frame(self, kind: &str, object: &[u8]) -> Bytes {
        match self {
            Framing::Json => {
                let mut frame = Vec::with_capacity(object.len() + 40);
                frame.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
                frame.extend_from_slice(object);
                frame.extend_from_slice(b"}\n");
                frame.into()
            }
            Framing::Protobuf => {
                let object = serde_json::from_slice(object).unwrap_or(Value::Null);
                let object = respond::protobuf(&object).unwrap_or_default();
                watch_frame(kind, &object).into()
            }
        }
    }

    pub(super) fn error(self, error: &ApiError) -> Bytes {
        self.frame(
            "ERROR",
            &respond::encode_typed(respond::STATUS, &error.to_value()),
        )
    }
}
