//! Objects as they are stored, and what is made of them: values of the served version, bytes that are sent, drafts.

use bytes::Bytes;
use kubewright_schema::{Table, crd, encode};
use serde_json::Value;

use super::{Builtin, Nature, Served};
use crate::object;
use crate::status::ApiError;
use crate::storage::{Draft, Pairs, Record};

impl Served {
    /// The stored object as a value of this version.
    pub(crate) fn revive(&self, record: &Record) -> Result<Value, ApiError> {
        self.revive_bytes(record.body(), record.revision())
    }

    fn revive_bytes(&self, body: &[u8], revision: u64) -> Result<Value, ApiError> {
        let mut value: Value = serde_json::from_slice(body).map_err(ApiError::internal)?;
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

    /// Makes a custom object of another version one of this: its fields are those that both have.
    pub(crate) fn adopt(&self, value: &mut Value) {
        if let Nature::Custom(custom) = &self.nature {
            value["apiVersion"] = Value::from(self.api_version.as_str());
            crd::prune(&custom.version, value);
            crd::default(&custom.version, value);
        }
    }

    /// Whether what was stored at a revision may not be sent as it is: it is of another version, or older than the
    /// schema.
    pub(crate) fn must_revive(&self, revision: u64) -> bool {
        match &self.nature {
            Nature::Builtin(builtin) => builtin.conversion.is_some(),
            Nature::Custom(custom) => {
                revision < custom.schema_revision || custom.stored_api_version != self.api_version
            }
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
            Nature::Custom(custom) if custom.stored_api_version != self.api_version => {
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

    /// A custom object as the store takes it, with what a webhook made of it for the store.
    pub(crate) fn draft_converted(&self, value: &Value, mut stored: Value) -> Draft {
        object::set_meta(&mut stored, "resourceVersion", "");
        let (body, version_at) = self.encode(&stored);
        Draft {
            uid: object::uid(value).into(),
            labels: object::labels(&stored),
            fields: self.selectable_fields(value),
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
