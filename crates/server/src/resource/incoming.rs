//! Objects that come in: decoded, checked for their type, and compared with what they should be.

use kubewright_schema::decode::DecodeError;
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

/// Why a value is not an object of a kind.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// `apiVersion` or `kind` is missing, or that of something else.
    Kind(WrongKind),
    /// A value does not fit the type of its field.
    Type(DecodeError),
}

/// Why `apiVersion` and `kind` are not those that are expected.
#[derive(Debug)]
pub(crate) enum WrongKind {
    NotAnObject,
    NotText(&'static str),
    OtherKind { api_version: String, kind: String },
    OtherVersion(String),
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
                self.check_type(&mut incoming.object)
                    .map_err(|wrong| self.refuse_kind(&wrong, bytes))?;
                let unknown = crd::prune(&custom.version, &mut incoming.object);
                incoming.strict.extend(
                    unknown
                        .iter()
                        .map(|path| format!("unknown field \"{path}\"")),
                );
                incoming.strict.truncate(MAX_STRICT);
                self.conform_metadata(&mut incoming.object)
                    .map_err(|e| self.unhandled(&e.to_string()))?;
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
        self.check_type(&mut object)
            .map_err(|wrong| self.refuse_kind(&wrong, bytes))?;
        Ok(Incoming {
            object,
            strict: decoded.strict.iter().map(ToString::to_string).collect(),
        })
    }

    /// Checks `apiVersion` and `kind`, and fills them in when they are absent.
    fn check_type(&self, object: &mut Value) -> Result<(), WrongKind> {
        let fields = object.as_object_mut().ok_or(WrongKind::NotAnObject)?;
        for field in ["apiVersion", "kind"] {
            let value = fields.get(field).unwrap_or(&Value::Null);
            if !value.is_string() && !value.is_null() {
                return Err(WrongKind::NotText(field));
            }
        }
        let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
        if !kind.is_empty() && kind != *self.resource.kind {
            return Err(WrongKind::OtherKind { api_version, kind });
        }
        if !api_version.is_empty() && api_version != self.api_version {
            return Err(WrongKind::OtherVersion(api_version));
        }
        fields.insert("kind".into(), Value::from(&*self.resource.kind));
        fields.insert("apiVersion".into(), Value::from(self.api_version.as_str()));
        Ok(())
    }

    /// The refusal of a body that is of something else.
    fn refuse_kind(&self, wrong: &WrongKind, bytes: &[u8]) -> ApiError {
        let why = self.why_wrong(wrong);
        match wrong {
            WrongKind::NotAnObject | WrongKind::NotText(_) => self.unrecognized(bytes, &why),
            WrongKind::OtherKind { api_version, kind } => {
                let (version, expected) = (last_part(api_version), &self.resource.kind);
                ApiError::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a {expected}: {why}"
                ))
            }
            WrongKind::OtherVersion(_) => ApiError::bad_request(why),
        }
    }

    fn why_wrong(&self, wrong: &WrongKind) -> String {
        let expected = &self.resource.kind;
        match (wrong, &self.nature) {
            (WrongKind::NotAnObject, _) => {
                "json: cannot unmarshal into Go value of type struct".to_owned()
            }
            (WrongKind::NotText(field), _) => {
                format!("json: cannot unmarshal into Go struct field .{field} of type string")
            }
            (WrongKind::OtherKind { api_version, kind }, Nature::Builtin(_)) => {
                let group = self.resource.group.split('.').next();
                let group = group.filter(|group| !group.is_empty()).unwrap_or("core");
                let version = last_part(api_version);
                format!("converting ({version}.{kind}) to ({group}.{expected}): unknown conversion")
            }
            (WrongKind::OtherKind { kind, .. }, Nature::Custom(_)) => format!(
                "the kind in the data ({kind}) does not match the expected kind ({expected})"
            ),
            (WrongKind::OtherVersion(found), _) => format!(
                "the API version in the data ({found}) does not match the expected API version ({})",
                self.api_version
            ),
        }
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

    /// Brings a value into the type's form; gives the unknown fields it dropped.
    pub(crate) fn conform(&self, value: &mut Value) -> Result<Vec<String>, Misfit> {
        self.check_type(value).map_err(Misfit::Kind)?;
        match &self.nature {
            Nature::Builtin(builtin) => {
                let strict = decode::conform(Table::builtin(), builtin.ty, value);
                let strict = strict.map_err(Misfit::Type)?;
                Ok(strict.iter().map(ToString::to_string).collect())
            }
            Nature::Custom(custom) => {
                let unknown = crd::prune(&custom.version, value);
                self.conform_metadata(value).map_err(Misfit::Type)?;
                Ok(unknown
                    .iter()
                    .take(MAX_STRICT)
                    .map(|path| format!("unknown field \"{path}\""))
                    .collect())
            }
        }
    }

    /// The refusal of a value that is not an object of this kind.
    pub(crate) fn refuse(&self, misfit: &Misfit) -> ApiError {
        match misfit {
            Misfit::Kind(wrong) => self.refuse_kind(wrong, b""),
            Misfit::Type(error) => self.unhandled(&error.to_string()),
        }
    }

    /// What is wrong with a value, without saying of which kind it should be.
    pub(crate) fn why(&self, misfit: &Misfit) -> String {
        match misfit {
            Misfit::Kind(wrong) => self.why_wrong(wrong),
            Misfit::Type(error) => error.to_string(),
        }
    }

    /// The metadata of a custom object has types, whatever its schema says of the rest.
    fn conform_metadata(&self, object: &mut Value) -> Result<(), DecodeError> {
        let table = Table::builtin();
        let ty = table
            .named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
            .expect("ObjectMeta is in the type table");
        match object.get_mut("metadata") {
            Some(metadata) => decode::conform(table, ty, metadata).map(drop),
            None => Ok(()),
        }
    }
}

/// The version in an `apiVersion`.
fn last_part(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or("")
}
