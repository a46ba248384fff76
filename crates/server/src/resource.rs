//! A served resource: everything the server knows of one resource at one version.
//!
//! Built-in and custom kinds differ in how objects are decoded, defaulted and validated; they differ here and
//! nowhere else. The verbs work on a [`Served`] and do not ask which it is.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_schema::catalog::{Resource, Scope};
use kubewright_schema::decode;
use kubewright_schema::protobuf::ProtobufError;
use kubewright_schema::{FieldError, Table, TypeId, crd, encode};
use serde_json::Value;

use crate::conversion::Conversion;
use crate::http::accept::Protobuf;
use crate::http::body::{BodyError, BodyFormat};
use crate::kinds::Strategy;
use crate::object;
use crate::printers::Printer;
use crate::status::{About, ApiError};
use crate::storage::{Collection, Draft, Pairs, Record};

/// One resource at one version.
pub(crate) struct Served {
    /// As discovery shows it.
    pub(crate) resource: Resource,
    /// Where its objects are. Versions of one resource share it.
    pub(crate) collection: Collection,
    /// How it is shown as a table.
    pub(crate) printer: Printer,
    pub(crate) nature: Nature,
}

/// What differs between built-in and custom kinds.
pub(crate) enum Nature {
    Builtin(Builtin),
    Custom(Custom),
}

/// A kind that is part of Kubernetes.
pub(crate) struct Builtin {
    pub(crate) ty: TypeId,
    pub(crate) strategy: &'static Strategy,
    /// Set when objects are stored at another version than this one.
    pub(crate) conversion: Option<&'static Conversion>,
}

/// A kind that a CustomResourceDefinition defines.
pub(crate) struct Custom {
    pub(crate) version: Arc<crd::CompiledVersion>,
    /// As written, for OpenAPI.
    pub(crate) schema: Value,
    pub(crate) scale: Option<crd::Scale>,
    /// Fields that selectors may name besides name and namespace.
    pub(crate) selectable: crd::SelectableFields,
    pub(crate) strategy: Strategy,
    /// `apiVersion` of stored objects.
    pub(crate) stored_api_version: String,
    /// Objects written before this revision may lack what the schema now defaults.
    pub(crate) schema_revision: u64,
    /// The definition is being deleted: nothing new may be created.
    pub(crate) terminating: bool,
    /// Sent with every answer when the version is deprecated.
    pub(crate) deprecation: Option<String>,
}

/// An object as a client sent it.
pub(crate) struct Incoming {
    pub(crate) object: Value,
    /// Unknown and duplicate fields, worded as the API words them.
    pub(crate) strict: Vec<String>,
}

impl Served {
    /// What refusals about objects name: the plural.
    pub(crate) fn about(&self) -> About<'_> {
        About {
            group: &self.resource.group,
            resource: &self.resource.plural,
        }
    }

    /// What refusals about the content of objects name: the kind.
    pub(crate) fn about_kind(&self) -> About<'_> {
        About {
            group: &self.resource.group,
            resource: &self.resource.kind,
        }
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        &*self.resource.group == group && &*self.resource.kind == kind
    }

    pub(crate) fn strategy(&self) -> &Strategy {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.strategy,
            Nature::Custom(custom) => &custom.strategy,
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match &self.nature {
            Nature::Custom(custom) => Some(custom),
            Nature::Builtin(_) => None,
        }
    }

    /// The type that objects are decoded by.
    pub(crate) fn ty(&self) -> (&Table, TypeId) {
        match &self.nature {
            Nature::Builtin(builtin) => (Table::builtin(), builtin.ty),
            Nature::Custom(custom) => (&custom.version.table, custom.version.root),
        }
    }

    /// What of it can be protobuf.
    pub(crate) fn protobuf(&self) -> Protobuf {
        match &self.nature {
            Nature::Builtin(_) => Protobuf::Objects,
            Nature::Custom(_) => Protobuf::Metadata,
        }
    }

    /// The key of an object in the collection.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) if self.is_namespaced() => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    }

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
        let expected = self.resource.api_version();
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
        match &self.nature {
            Nature::Builtin(builtin) => {
                let strict = decode::conform(Table::builtin(), builtin.ty, value)
                    .map_err(|e| self.unhandled(&e.to_string()))?;
                Ok(strict.iter().map(ToString::to_string).collect())
            }
            Nature::Custom(custom) => {
                let unknown = crd::prune(&custom.version, value);
                Ok(unknown
                    .iter()
                    .map(|path| format!("unknown field \"{path}\""))
                    .collect())
            }
        }
    }

    /// Fills in defaults.
    pub(crate) fn default(&self, value: &mut Value) {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.strategy.default(value),
            Nature::Custom(custom) => crd::default(&custom.version, value),
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate(&self, value: &Value) -> Vec<FieldError> {
        let errors = self.strategy().validate(value, self.resource.scope);
        match &self.nature {
            Nature::Builtin(_) => errors,
            Nature::Custom(custom) => crd::validate(&custom.version, value, None, errors),
        }
    }

    /// What is wrong with an updated object.
    pub(crate) fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let errors = self
            .strategy()
            .validate_update(new, old, self.resource.scope);
        match &self.nature {
            Nature::Builtin(_) => errors,
            Nature::Custom(custom) => crd::validate(&custom.version, new, Some(old), errors),
        }
    }

    /// What is wrong with an updated status.
    pub(crate) fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let errors = self
            .strategy()
            .validate_status_update(new, old, self.resource.scope);
        match &self.nature {
            Nature::Builtin(_) => errors,
            Nature::Custom(custom) => crd::validate_status(&custom.version, new, old, errors),
        }
    }

    /// The stored object as a value of this version.
    pub(crate) fn revive(&self, record: &Record) -> Result<Value, ApiError> {
        let mut value: Value = serde_json::from_slice(record.body()).map_err(ApiError::internal)?;
        match &self.nature {
            Nature::Builtin(Builtin {
                conversion: Some(conversion),
                ..
            }) => (conversion.from_storage)(&mut value),
            Nature::Builtin(_) => {}
            Nature::Custom(custom) => {
                self.adopt(&mut value);
                if record.revision() < custom.schema_revision || self.converts() {
                    crd::prune(&custom.version, &mut value);
                    crd::default(&custom.version, &mut value);
                }
            }
        }
        Ok(value)
    }

    /// Whether stored bytes may not be sent as they are.
    pub(crate) fn must_revive(&self, record: &Record) -> bool {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.conversion.is_some(),
            Nature::Custom(custom) => record.revision() < custom.schema_revision || self.converts(),
        }
    }

    fn converts(&self) -> bool {
        self.custom()
            .is_some_and(|c| c.stored_api_version != self.resource.api_version())
    }

    /// Sets the `apiVersion` of this version.
    fn adopt(&self, value: &mut Value) {
        if self.converts()
            && let Some(fields) = value.as_object_mut()
        {
            fields.insert(
                "apiVersion".into(),
                Value::from(self.resource.api_version()),
            );
        }
    }

    /// The stored object as it is sent at this version.
    pub(crate) fn body(&self, record: &Record) -> Result<Bytes, ApiError> {
        if self.must_revive(record) {
            Ok(self.encode(&self.revive(record)?).0.into())
        } else {
            Ok(record.body().clone())
        }
    }

    /// An object as JSON at this version, and where in it the digits of its resource version go.
    pub(crate) fn encode(&self, value: &Value) -> (Vec<u8>, usize) {
        let mut bytes = Vec::with_capacity(1024);
        let encoded = match &self.nature {
            Nature::Builtin(builtin) => {
                encode::encode(Table::builtin(), builtin.ty, value, &mut bytes)
            }
            Nature::Custom(_) => encode::encode_untyped(value, &mut bytes),
        };
        (bytes, blank(encoded))
    }

    /// The object as the store takes it. Its resource version is left blank.
    pub(crate) fn draft(&self, mut value: Value) -> Draft {
        object::set_meta(&mut value, "resourceVersion", "");
        let fields = self.selectable_fields(&value);
        let uid = object::uid(&value).into();
        let labels = object::labels(&value);
        let (body, version_at) = match &self.nature {
            Nature::Builtin(Builtin {
                conversion: Some(conversion),
                ..
            }) => {
                (conversion.to_storage)(&mut value);
                let mut bytes = Vec::with_capacity(1024);
                let encoded = encode::encode(
                    Table::builtin(),
                    conversion.stored_type(),
                    &value,
                    &mut bytes,
                );
                (bytes, blank(encoded))
            }
            Nature::Custom(custom) if self.converts() => {
                value["apiVersion"] = Value::from(custom.stored_api_version.as_str());
                self.encode(&value)
            }
            _ => self.encode(&value),
        };
        Draft {
            uid,
            labels,
            fields,
            body,
            version_at,
        }
    }

    fn selectable_fields(&self, value: &Value) -> Pairs {
        match &self.nature {
            Nature::Builtin(builtin) => builtin
                .strategy
                .selectable_fields(value)
                .into_iter()
                .collect(),
            Nature::Custom(custom) => {
                let pair = |name| Some((name, custom.selectable.value(name, value)?));
                custom.selectable.names().filter_map(pair).collect()
            }
        }
    }

    /// Checks the labels of a field selector.
    pub(crate) fn check_field_label(&self, label: &str) -> Result<(), ApiError> {
        if let Nature::Custom(custom) = &self.nature
            && custom.selectable.names().any(|known| known == label)
        {
            return Ok(());
        }
        self.strategy()
            .check_field_label(label)
            .map_err(ApiError::bad_request)
    }
}

/// An object that is written back to where it was read from, at the version it is stored at.
pub(crate) fn custom_draft(mut value: Value, record: &Record) -> Draft {
    object::set_meta(&mut value, "resourceVersion", "");
    let mut body = Vec::with_capacity(record.body().len() + 64);
    let version_at = blank(encode::encode_untyped(&value, &mut body));
    Draft {
        uid: record.uid().into(),
        labels: object::labels(&value),
        fields: record.fields().clone(),
        body,
        version_at,
    }
}

/// Where the digits of the resource version go. Every object has metadata, so there is always a place.
fn blank(encoded: encode::Encoded) -> usize {
    encoded
        .version_at
        .expect("an encoded object has metadata with a resource version")
}
