//! Request bodies with their limits, and the body type of every answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kubewright_schema::protobuf::{self, ProtobufError};
use kubewright_schema::{Table, TypeId, decode};
use serde_json::Value;

use super::accept::{PROTOBUF, Protobuf};
use crate::memory::Charge;
use crate::status::ApiError;

/// Largest request body, as in Kubernetes.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The body of every answer: whole, or a stream that ends without an error.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// An answer's body from bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> ResponseBody {
    Full::new(bytes.into()).boxed_unsync()
}

/// Reads a request body up to the limit; what exceeds it is never buffered. Its bytes are counted as they arrive.
pub(crate) async fn read<B>(
    headers: &HeaderMap,
    body: B,
    charge: Option<&mut Charge>,
) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes> + Send,
{
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|n| n > MAX_BODY as u64) {
        return Err(too_large());
    }
    if headers
        .get(CONTENT_ENCODING)
        .is_some_and(|v| v != "identity")
    {
        return Err(ApiError::unsupported_media_type(
            "compressed request bodies are not accepted",
        ));
    }
    match tokio::time::timeout(BODY_TIMEOUT, collect(Box::pin(body), charge)).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::request_timeout()),
    }
}

async fn collect<B>(
    mut body: Pin<Box<B>>,
    mut charge: Option<&mut Charge>,
) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes> + Send,
{
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::bad_request("the request body broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.len() > MAX_BODY {
            return Err(too_large());
        }
        if let Some(charge) = &mut charge {
            charge.add(data.len())?;
        }
        // Most bodies come in one frame and are passed on without a copy.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn too_large() -> ApiError {
    ApiError::too_large(format!("Request entity too large: limit is {MAX_BODY}"))
}

/// The format of an object in a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Text(decode::Format),
    Protobuf,
}

/// Why a body is not an object of a type.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error(transparent)]
    Text(decode::DecodeError),
    #[error(transparent)]
    Protobuf(ProtobufError),
}

impl BodyFormat {
    /// Reads a value of a type.
    pub(crate) fn decode(
        self,
        table: &Table,
        ty: TypeId,
        bytes: &[u8],
    ) -> Result<decode::Decoded, BodyError> {
        match self {
            BodyFormat::Text(format) => {
                decode::decode(table, ty, bytes, format).map_err(BodyError::Text)
            }
            BodyFormat::Protobuf => {
                let value = protobuf::decode(table, ty, bytes).map_err(BodyError::Protobuf)?;
                let strict = Vec::new();
                Ok(decode::Decoded { value, strict })
            }
        }
    }
}

/// Finds the format of an object in a request body.
pub(crate) fn format(headers: &HeaderMap, protobuf: Protobuf) -> Result<BodyFormat, ApiError> {
    match media_type(headers) {
        "" | "application/json" => Ok(BodyFormat::Text(decode::Format::Json)),
        "application/yaml" => Ok(BodyFormat::Text(decode::Format::Yaml)),
        PROTOBUF if protobuf == Protobuf::Objects => Ok(BodyFormat::Protobuf),
        _ => Err(ApiError::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            protobuf.available()
        ))),
    }
}

/// The media type without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    value.split(';').next().unwrap_or("").trim()
}

/// Counts what a value would take as JSON, roughly, and refuses what no request could have sent.
pub(crate) fn check_size(value: &Value) -> Result<(), ApiError> {
    fn size(value: &Value, left: &mut usize) -> Option<()> {
        let own = match value {
            Value::String(s) => s.len() + 2,
            Value::Object(o) => o.keys().map(|k| k.len() + 4).sum::<usize>() + 2,
            Value::Array(a) => a.len() + 2,
            _ => 4,
        };
        *left = left.checked_sub(own)?;
        match value {
            Value::Object(o) => o.values().try_for_each(|v| size(v, left)),
            Value::Array(a) => a.iter().try_for_each(|v| size(v, left)),
            _ => Some(()),
        }
    }
    let mut left = MAX_BODY;
    size(value, &mut left).ok_or_else(|| {
        ApiError::too_large(format!(
            "Request entity too large: the patched object exceeds {MAX_BODY} bytes"
        ))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn protobuf_is_read_for_built_in_kinds_alone() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF))]);
        let builtin = format(&headers, Protobuf::Objects).expect("a built-in kind");
        assert_eq!(builtin, BodyFormat::Protobuf);
        let error = format(&headers, Protobuf::Metadata).expect_err("a custom kind");
        assert_eq!(error.code(), 415);
        assert_eq!(
            error.message(),
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml"
        );
    }
}
