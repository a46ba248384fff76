//! Types whose protobuf message looks nothing like their JSON.

use jiff::Timestamp;
use serde_json::Value;

use crate::types::{Table, TypeId};

/// Package of the types that are part of a CRD's schema.
const APIEXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

/// How a value without a shape lies in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loose {
    /// Any JSON, as text in field 1.
    Json,
    /// A schema in field 1, or schemas in field 2.
    SchemaOrArray,
    /// A boolean in field 1, or a schema in field 2.
    SchemaOrBool,
    /// A schema in field 1, or strings in field 2.
    SchemaOrStrings,
}

impl Loose {
    /// How values of a type lie; nothing when the type is not part of any message.
    pub(super) fn of(table: &Table, ty: TypeId) -> Option<Self> {
        let name = table.get(ty).name.as_deref()?;
        match name.rsplit('.').next()? {
            "JSON" | "RawExtension" | "FieldsV1" => Some(Loose::Json),
            "JSONSchemaPropsOrArray" => Some(Loose::SchemaOrArray),
            "JSONSchemaPropsOrBool" => Some(Loose::SchemaOrBool),
            "JSONSchemaPropsOrStringArray" => Some(Loose::SchemaOrStrings),
            _ => None,
        }
    }
}

/// The type of the schemas in those messages.
pub(super) fn schema(table: &Table) -> Option<TypeId> {
    table.named(&format!("{APIEXTENSIONS}JSONSchemaProps"))
}

/// How exactly a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

/// A time as JSON has it. `None` when JSON cannot.
pub(super) fn time_text(seconds: i64, nanoseconds: i32, precision: Precision) -> Option<String> {
    let at = match precision {
        Precision::Seconds => Timestamp::from_second(seconds),
        Precision::Microseconds => Timestamp::new(seconds, nanoseconds),
    };
    let at = at.ok().filter(|at| at.as_second() >= FIRST_SECOND)?;
    Some(match precision {
        Precision::Seconds => at.to_string(),
        Precision::Microseconds => format!("{at:.6}"),
    })
}

/// 0000-01-01T00:00:00Z; JSON has no years before.
const FIRST_SECOND: i64 = -62_167_219_200;

/// Seconds and nanoseconds of a time in JSON; the latter count forward.
pub(super) fn time_parts(value: &Value) -> Option<(i64, i32)> {
    let at: Timestamp = value.as_str()?.parse().ok()?;
    let (seconds, nanoseconds) = (at.as_second(), at.subsec_nanosecond());
    Some(if nanoseconds < 0 {
        (seconds - 1, nanoseconds + 1_000_000_000)
    } else {
        (seconds, nanoseconds)
    })
}
