//! Patches of every kind. An input is `{"document": …, "patch": …}`, the patch as its kind has it.

use kubewright_schema::apply::{FieldManager, Force, OneVersion, Reset, Typed};
use kubewright_schema::decode::{self, Format};
use kubewright_schema::patch::{
    json as json_patch, merge as merge_patch, strategic as strategic_patch,
};
use kubewright_schema::{Table, TypeId};
use serde_json::Value;

use super::documents::type_of;
use super::{Verdict, start};

/// A document and what is to be done to it.
struct Pair {
    document: Value,
    patch: Value,
}

fn pair(input: &[u8]) -> Result<Pair, Verdict> {
    let parsed = decode::parse(input, Format::Json);
    let mut value = parsed
        .map_err(|error| Verdict::refused(start(&error.to_string())))?
        .value;
    let mut take = |name: &str| value.get_mut(name).map(Value::take);
    match (take("document"), take("patch")) {
        (Some(document), Some(patch)) => Ok(Pair { document, patch }),
        _ => Err(Verdict::refused("no document or no patch")),
    }
}

pub(super) fn json(input: &[u8]) -> Verdict {
    let pair = match pair(input) {
        Ok(pair) => pair,
        Err(verdict) => return verdict,
    };
    let applied = json_patch::JsonPatch::decode(pair.patch.to_string().as_bytes())
        .and_then(|patch| patch.apply(pair.document));
    match applied {
        Ok(_) => Verdict::accepted("patch"),
        Err(error) => Verdict::refused(start(&error.to_string())),
    }
}

pub(super) fn merge(input: &[u8]) -> Verdict {
    let pair = match pair(input) {
        Ok(pair) => pair,
        Err(verdict) => return verdict,
    };
    match merge_patch::apply(pair.document, pair.patch.clone()) {
        Ok(once) => {
            // Where something else takes the place of an object, nulls inside of it stay, as they do in Go.
            let twice = merge_patch::apply(once.clone(), pair.patch).map(without_nulls);
            assert_eq!(
                twice.ok(),
                Some(without_nulls(once)),
                "merging twice is merging once"
            );
            Verdict::accepted("patch")
        }
        Err(error) => Verdict::refused(start(&error.to_string())),
    }
}

pub(super) fn strategic(input: &[u8]) -> Verdict {
    let pair = match pair(input) {
        Ok(pair) => pair,
        Err(verdict) => return verdict,
    };
    let Some((ty, document)) = typed(&pair.document) else {
        return Verdict::refused("document of no kind");
    };
    match strategic_patch::apply(Table::builtin(), ty, &document, pair.patch) {
        Ok(_) => Verdict::accepted("patch"),
        Err(error) => Verdict::refused(start(&error.to_string())),
    }
}

/// Server-side apply: to nothing, then again, then as somebody else.
pub(super) fn apply(input: &[u8]) -> Verdict {
    let pair = match pair(input) {
        Ok(pair) => pair,
        Err(verdict) => return verdict,
    };
    let (Some((ty, document)), Some((patch_ty, patch))) =
        (typed(&pair.document), typed(&pair.patch))
    else {
        return Verdict::refused("document of no kind");
    };
    if ty != patch_ty {
        return Verdict::refused("documents of two kinds");
    }
    let text = |name: &str| patch.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let versions = OneVersion {
        api_version,
        typed: Typed::new(Table::builtin(), ty),
    };
    let reset = Reset::these(&[]);
    let manager = |manager| FieldManager {
        versions: &versions,
        api_version,
        kind,
        subresource: "",
        manager,
        now: "2024-01-01T00:00:00Z",
        reset: &reset,
    };
    let mut live = document;
    manager("first").update(None, &mut live);
    let applied = manager("second").apply(Some(&live), &patch, Force::No);
    let outcome = match &applied {
        Ok(_) => Verdict::accepted("apply"),
        Err(error) => Verdict::refused(start(&error.to_string())),
    };
    // What has no managers at all is taken for older than they are, and gets one with the next apply.
    if let Ok(once) = manager("second").apply(Some(&live), &patch, Force::Yes)
        && once["metadata"].get("managedFields").is_some()
    {
        let twice = manager("second").apply(Some(&once), &patch, Force::No);
        let twice = twice.unwrap_or_else(|error| panic!("applying again applies, but {error}"));
        assert_eq!(
            without_nulls(twice),
            without_nulls(once),
            "applying twice is applying once"
        );
    }
    outcome
}

/// An object as the server has it after decoding.
fn typed(value: &Value) -> Option<(TypeId, Value)> {
    let ty = type_of(value)?;
    let bytes = value.to_string();
    let decoded = decode::decode(Table::builtin(), ty, bytes.as_bytes(), Format::Json).ok()?;
    Some((ty, decoded.value))
}

/// Applying may leave nulls where all fields were taken out; decoding drops them.
fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .filter(|(_, field)| !field.is_null())
                .map(|(name, field)| (name, without_nulls(field)))
                .collect();
        }
        Value::Array(items) => {
            *items = std::mem::take(items)
                .into_iter()
                .map(without_nulls)
                .collect();
        }
        _ => {}
    }
    value
}
