//! Objects that come in: decoded, checked for their type, and compared with what they should be.

use kubewright_schema::protobuf::ProtobufError;
use kubewright_schema::{Table, TypeId, crd, decode};
use serde_json::Value;

use super::{Nature, Served};
use crate::http::body::{BodyError, BodyFormat};
use crate::status::ApiError;

/// The most unknown and duplicate fields that are reported, as for built-in kinds.
const MAX_STRICT: usize = 100;

/// An object as a client sent it.
pub(crate) struct Incoming {
    pub(crate) object: Value,
    /// Unknown and duplicate fields, worded as the API words them.
    pub(crate) strict: Vec<String>,
}

impl Served {
    /// Reads an object from a request body.
    pub(crate) fn decode(&self, bytes: &[u8], format: BodyFormat) -> Result<Incoming, ApiError> {
        match (&self.nature, format) {
            (Nature::Builtin(builtin), format) => self.decode_builtin(builtin.ty, bytes, format),
            (Nature::Custom(_), BodyFormat::Protobuf) => Err(ApiError::internal(
                "a custom resource was let in as protobuf",
            )),
            (Nature::Custom(custom), BodyFormat::Text(format)) => {
                let parsed = decode::parse(bytes, format)
                    .map_err(|e| self.unrecognized(bytes, &e.to_string()))?;
                let mut incoming = Incoming {
                    object: parsed.value,
                    strict: Vec::new(),
                };
                incoming.strict.extend(
                    parsed
                        .duplicates
                        .iter()
                        .map(|path| format!("duplicate field \"{path}\"")),
                );
                self.check_type(&mut incoming.object, bytes)?;
                let unknown = crd::prune(&custom.version, &mut incoming.object);
                incoming.strict.extend(
                    unknown
                        .iter()
                        .map(|path| format!("unknown field \"{path}\"")),
                );
                incoming.strict.truncate(MAX_STRICT);
                self.conform_metadata(&mut incoming.object)?;
                Ok(incoming)
            }
        }
    }

    fn decode_builtin(
        &self,
        ty: TypeId,
        bytes: &[u8],
        format: BodyFormat,
    ) -> Result<Incoming, ApiError> {
        let decoded = format
            .decode(Table::builtin(), ty, bytes)
            .map_err(|e| match e {
                BodyError::Text(e) if e.is_parse() => self.unrecognized(bytes, &e.to_string()),
                BodyError::Protobuf(e) if e.is_outside() => self.unrecognized_bytes(bytes, &e),
                e => self.unhandled(&e.to_string()),
            })?;
        let mut object = decoded.value;
        self.check_type(&mut object, bytes)?;
        Ok(Incoming {
            object,
            strict: decoded.strict.iter().map(ToString::to_string).collect(),
        })
    }

    /// Checks `apiVersion` and `kind`, and fills them in when they are absent.
    fn check_type(&self, object: &mut Value, bytes: &[u8]) -> Result<(), ApiError> {
        let Some(fields) = object.as_object_mut() else {
            return Err(
                self.unrecognized(bytes, "json: cannot unmarshal into Go value of type struct")
            );
        };
        for field in ["apiVersion", "kind"] {
            let value = fields.get(field).unwrap_or(&Value::Null);
            if !value.is_string() && !value.is_null() {
                let why =
                    format!("json: cannot unmarshal into Go struct field .{field} of type string");
                return Err(self.unrecognized(bytes, &why));
            }
        }
        let expected = self.api_version.clone();
        let kind = fields
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        let api_version = fields
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        if !kind.is_empty() && kind != *self.resource.kind {
            return Err(self.wrong_kind(&api_version, &kind));
        }
        if !api_version.is_empty() && api_version != expected {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )));
        }
        fields.insert("kind".into(), Value::from(&*self.resource.kind));
        fields.insert("apiVersion".into(), Value::from(expected));
        Ok(())
    }

    fn wrong_kind(&self, api_version: &str, kind: &str) -> ApiError {
        let expected = &self.resource.kind;
        let version = api_version.rsplit('/').next().unwrap_or("");
        let group = if self.resource.group.is_empty() {
            "core"
        } else {
            self.resource.group.split('.').next().unwrap_or("")
        };
        let why = match &self.nature {
            Nature::Builtin(_) => {
                format!("converting ({version}.{kind}) to ({group}.{expected}): unknown conversion")
            }
            Nature::Custom(_) => format!(
                "the kind in the data ({kind}) does not match the expected kind ({expected})"
            ),
        };
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {expected}: {why}"
        ))
    }

    fn unrecognized(&self, bytes: &[u8], why: &str) -> ApiError {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
        let more = if bytes.len() > 256 { " ..." } else { "" };
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: \
             {why} ({shown}{more})",
            self.resource.kind
        ))
    }

    /// A body that should be protobuf and does not say of what.
    fn unrecognized_bytes(&self, bytes: &[u8], why: &ProtobufError) -> ApiError {
        let shown: String = bytes.iter().take(30).map(|b| format!("{b:02x}")).collect();
        let shown = match bytes.len() {
            0 => "<empty>".to_owned(),
            1..=30 => shown,
            _ => format!("{shown} ..."),
        };
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({shown})",
            self.resource.kind
        ))
    }

    /// A body that is an object but not one of this kind.
    pub(crate) fn unhandled(&self, why: &str) -> ApiError {
        let (kind, version) = (&self.resource.kind, &self.resource.version);
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    }

    /// Brings a value that came out of a patch into the type's form; gives the unknown fields it dropped.
    pub(crate) fn conform(&self, value: &mut Value) -> Result<Vec<String>, ApiError> {
        self.check_type(value, b"")?;
        match &self.nature {
            Nature::Builtin(builtin) => {
                let strict = decode::conform(Table::builtin(), builtin.ty, value)
                    .map_err(|e| self.unhandled(&e.to_string()))?;
                Ok(strict.iter().map(ToString::to_string).collect())
            }
            Nature::Custom(custom) => {
                let unknown = crd::prune(&custom.version, value);
                self.conform_metadata(value)?;
                Ok(unknown
                    .iter()
                    .take(MAX_STRICT)
                    .map(|path| format!("unknown field \"{path}\""))
                    .collect())
            }
        }
    }

    /// The metadata of a custom object has types, whatever its schema says of the rest.
    fn conform_metadata(&self, object: &mut Value) -> Result<(), ApiError> {
        let table = Table::builtin();
        let Some(ty) = table.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else {
            return Err(ApiError::internal("ObjectMeta is not in the type table"));
        };
        match object.get_mut("metadata") {
            Some(metadata) => decode::conform(table, ty, metadata)
                .map(drop)
                .map_err(|e| self.unhandled(&e.to_string())),
            None => Ok(()),
        }
    }
}
