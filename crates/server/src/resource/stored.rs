//! Objects as they are stored, and what is made of them: values of the served version, bytes that are sent, drafts.

use bytes::Bytes;
use kubewright_schema::{Table, crd, encode};
use serde_json::Value;

use super::verbs::selectable_fields;
use super::{Builtin, Custom, Nature, Schemas, Served};
use crate::object;
use crate::status::ApiError;
use crate::storage::{Draft, Record};

impl Served {
    /// The stored object as a value of this version.
    pub(crate) fn revive(&self, record: &Record) -> Result<Value, ApiError> {
        self.revive_bytes(record.body(), record.revision())
    }

    fn revive_bytes(&self, body: &[u8], revision: u64) -> Result<Value, ApiError> {
        let mut value = self.read_stored(body, revision)?;
        if !self.must_revive(revision) {
            return Ok(value);
        }
        match &self.nature {
            Nature::Builtin(builtin) => {
                if let Some(conversion) = builtin.conversion {
                    (conversion.from_storage)(&mut value);
                }
            }
            Nature::Custom(_) => self.adopt(&mut value),
        }
        Ok(value)
    }

    /// The stored object at the version that it was stored at. One that is older than the schema is pruned and takes
    /// the defaults that have come since.
    pub(crate) fn read_stored(&self, body: &[u8], revision: u64) -> Result<Value, ApiError> {
        let mut value: Value = serde_json::from_slice(body).map_err(ApiError::internal)?;
        if let Nature::Custom(custom) = &self.nature
            && revision < custom.schema_revision
        {
            custom.schemas.settle(&mut value);
        }
        Ok(value)
    }

    /// Makes a custom object of another version one of this: its fields are those that both have. It takes no defaults
    /// of this version; stored objects have those of the version they are stored at.
    pub(crate) fn adopt(&self, value: &mut Value) {
        if let Nature::Custom(custom) = &self.nature {
            value["apiVersion"] = Value::from(self.api_version.as_str());
            crd::prune(&custom.version, value);
        }
    }

    /// Whether what was stored at a revision may not be sent as it is: it is of another version, or older than the
    /// schema.
    pub(crate) fn must_revive(&self, revision: u64) -> bool {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.conversion.is_some(),
            Nature::Custom(custom) => {
                revision < custom.schema_revision || !self.is_stored_version()
            }
        }
    }

    /// Whether objects are stored at this version.
    pub(crate) fn is_stored_version(&self) -> bool {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.conversion.is_none(),
            Nature::Custom(custom) => custom.schemas.stored_api_version == self.api_version,
        }
    }

    /// The stored object as it is sent at this version.
    pub(crate) fn body(&self, record: &Record) -> Result<Bytes, ApiError> {
        self.present(record.body().clone(), record.revision())
    }

    /// An object that was stored at a revision, as it is sent at this version.
    pub(crate) fn present(&self, body: Bytes, revision: u64) -> Result<Bytes, ApiError> {
        if self.must_revive(revision) {
            Ok(self.encode(&self.revive_bytes(&body, revision)?).0.into())
        } else {
            Ok(body)
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
        match &self.nature {
            Nature::Builtin(builtin) => self.draft_builtin(builtin, value),
            Nature::Custom(custom) => {
                let uid = object::uid(&value).to_owned();
                if !self.is_stored_version() {
                    value["apiVersion"] = Value::from(custom.schemas.stored_api_version.as_str());
                    custom.schemas.settle(&mut value);
                }
                draft_stored(&custom.schemas, &uid, value)
            }
        }
    }

    fn draft_builtin(&self, builtin: &Builtin, mut value: Value) -> Draft {
        object::set_meta(&mut value, "resourceVersion", "");
        let (fields, uid) = (self.selectable_fields(&value), object::uid(&value).into());
        let labels = object::labels(&value);
        let mut body = Vec::with_capacity(1024);
        let ty = match builtin.conversion {
            Some(conversion) => {
                (conversion.to_storage)(&mut value);
                conversion.stored_type()
            }
            None => builtin.ty,
        };
        let version_at = blank(encode::encode(Table::builtin(), ty, &value, &mut body));
        Draft {
            uid,
            labels,
            fields,
            body,
            version_at,
        }
    }
}

/// A custom object as the store takes it, with what a webhook made of it for the store.
pub(crate) fn draft_converted(custom: &Custom, uid: &str, mut stored: Value) -> Draft {
    custom.schemas.settle(&mut stored);
    draft_stored(&custom.schemas, uid, stored)
}

/// A custom object of the stored version as the store takes it.
fn draft_stored(schemas: &Schemas, uid: &str, mut value: Value) -> Draft {
    object::set_meta(&mut value, "resourceVersion", "");
    let mut body = Vec::with_capacity(1024);
    let version_at = blank(encode::encode_untyped(&value, &mut body));
    Draft {
        uid: uid.into(),
        labels: object::labels(&value),
        fields: selectable_fields(&schemas.selectable, &value),
        body,
        version_at,
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
