//! The events of a watch in the representation and format that the client asked for.

use bytes::Bytes;
use kubewright_schema::protobuf::watch_frame;
use serde_json::Value;

use crate::api::call::Call;
use crate::core::Core;
use crate::http::accept::{Format, Representation};
use crate::http::respond;
use crate::printers::{Headers, MetaVersion, Options, Row};
use crate::resource::Served;
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
                Ok(served.partial_metadata(&body, *version)?.into())
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
    /// One line of JSON each.
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
            Framing::Protobuf => protobuf_frame(kind, object),
        }
    }

    pub(super) fn error(self, error: &ApiError) -> Bytes {
        self.frame(
            "ERROR",
            &respond::encode_typed(respond::STATUS, &error.to_value()),
        )
    }
}

/// An event as protobuf. An object that cannot be written so becomes an error, after which clients list again; an empty
/// object would be believed.
fn protobuf_frame(kind: &str, object: &[u8]) -> Bytes {
    let object = serde_json::from_slice(object).ok();
    let written = object.and_then(|object| respond::protobuf(&object));
    if let Some(written) = written {
        return watch_frame(kind, &written).into();
    }
    let error = ApiError::internal("an object cannot be written as protobuf");
    let status = respond::protobuf(&error.to_value()).expect("a Status can be written as protobuf");
    watch_frame("ERROR", &status).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_cannot_be_written_is_an_error_and_not_empty() {
        let pod = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        let added = text(Framing::Protobuf.frame("ADDED", pod));
        assert!(added.contains("ADDED") && !added.contains("ERROR"));
        for object in [
            &b"{\"kind\":\"Widget\",\"apiVersion\":\"example.com/v1\"}"[..],
            b"no JSON",
        ] {
            let frame = text(Framing::Protobuf.frame("ADDED", object));
            assert!(
                frame.contains("ERROR") && !frame.contains("ADDED"),
                "{frame:?}"
            );
            assert!(frame.contains("cannot be written as protobuf"), "{frame:?}");
        }
    }
}
