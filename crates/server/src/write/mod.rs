//! Where every change of an object passes.
//!
//! All verbs take the same steps. A verb reads its options into a [`WriteRequest`] and says what is to change; the rest
//! is here, and no verb can leave a step out.
//!
//! | step | create | update, patch, apply, scale | delete |
//! |---|---|---|---|
//! | read the stored object, check preconditions | | ✓ | ✓ |
//! | change | the object that was sent | the verb's `change` | grace, finalizers (`Plan`) |
//! | default, manage fields | ✓ | ✓ | |
//! | mutating admission | ✓ | ✓ | ✓ |
//! | escalation of roles | ✓ | ✓ | |
//! | prepare: what the server alone sets, addresses | ✓ | ✓ | |
//! | validate | ✓ | ✓ | |
//! | validating admission, quota | ✓ | ✓ | ✓ |
//! | commit | ✓ | ✓ | ✓ |
//!
//! An update or delete that lost a race begins anew with what is stored then, unless the client insists on a version.
//! After its commit a write has nothing left to do (see `derived`).

mod commit;
mod create;
mod delete;
mod deletion;
mod effects;
mod fields;
mod metadata;
mod request;
mod steps;
mod update;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::core::Core;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::Record;

pub(crate) use delete::Deleted;
pub(crate) use deletion::DeleteOptions;
pub(crate) use fields::conflict_error;
pub(crate) use metadata::match_namespace;
pub(crate) use request::{WriteRequest, field_manager};

/// The outcome of a write.
pub(crate) enum Written {
    /// Stored, or found unchanged.
    Stored(Arc<Record>),
    /// Not stored (a dry run), or removed with this write: the object as it would be or was last.
    Value {
        value: Value,
        /// Resource version to show; none for an object that was never stored.
        version: Option<u64>,
    },
}

impl Core {
    /// The object that was written, as JSON of the served version.
    pub(crate) async fn written(
        &self,
        served: &Served,
        written: &Written,
    ) -> Result<Bytes, ApiError> {
        match written {
            Written::Stored(record) => self.converter.body(served, record).await,
            Written::Value { value, version } => {
                Ok(encode_at(served, value.clone(), *version).into())
            }
        }
    }
}

/// An object with a given resource version, or without one.
pub(crate) fn encode_at(served: &Served, mut value: Value, version: Option<u64>) -> Vec<u8> {
    object::set_meta(&mut value, "resourceVersion", "");
    let (mut bytes, at) = served.encode(&value);
    match version {
        Some(version) => drop(bytes.splice(at..at, version.to_string().bytes())),
        None => {
            // Cut the whole member out, with the comma on whichever side it has one.
            let mut start = at - r#""resourceVersion":""#.len();
            let mut end = at + 1;
            if bytes.get(end) == Some(&b',') {
                end += 1;
            } else if bytes.get(start - 1) == Some(&b',') {
                start -= 1;
            }
            bytes.drain(start..end);
        }
    }
    bytes
}
