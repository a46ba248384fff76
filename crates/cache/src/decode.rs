//! Reads JSON as Go does: a `null` is a field that is missing, and a condition without a time has the zero time.
//!
//! API servers and clients in Go write `null` for a time that was never set, or for a list without items. Generated Rust types
//! mostly take that, but not everywhere: the time of a condition, say, wants a text.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value, json};

/// The zero value of Go's times.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Decodes an object. Where that fails because of its data, it is decoded once more without its nulls and with zero values for
/// what its conditions lack; whatever decodes at once costs nothing more.
///
/// ```
/// use k8s_openapi::api::core::v1::Service;
///
/// let written_by_go = br#"{"metadata": {}, "status": {"conditions": [
///     {"type": "T", "status": "True", "reason": "E", "message": "m", "lastTransitionTime": null}]}}"#;
/// assert!(serde_json::from_slice::<Service>(written_by_go).is_err());
/// assert!(kubewright_cache::decode::<Service>(written_by_go).is_ok());
/// ```
///
/// # Errors
/// What is wrong with it as it is.
pub fn decode<K: DeserializeOwned>(json: &[u8]) -> Result<K, Error> {
    serde_json::from_slice(json).or_else(|error| {
        if !error.is_data() {
            return Err(error);
        }
        let mut value: Value = serde_json::from_slice(json)?;
        fill(&mut value);
        // As bytes again: to read a type from values as well would double the code that each type costs.
        serde_json::from_slice(value.to_string().as_bytes()).map_err(|_| error)
    })
}

/// Removes nulls, and completes conditions.
fn fill(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(fill);
            if let Some(Value::Array(conditions)) = fields.get_mut("conditions") {
                conditions.iter_mut().for_each(complete);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(fill),
        _ => {}
    }
}

/// Completes a condition with the fields that Go always writes.
fn complete(condition: &mut Value) {
    let Value::Object(fields) = condition else {
        return;
    };
    for (name, zero) in [
        ("lastTransitionTime", ZERO_TIME),
        ("reason", ""),
        ("message", ""),
    ] {
        fields.entry(name).or_insert_with(|| json!(zero));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Service};

    use super::*;

    #[test]
    fn nulls_are_zero_values() {
        let service = br#"{"metadata": {"name": "s", "labels": null}, "spec": {"ports": [{"port": 1, "name": null}]},
            "status": {"conditions": [{"type": "T", "status": "True", "lastTransitionTime": null}, {"type": "U", "status": ""}]}}"#;
        let service: Service = decode(service).expect("it decodes");
        let status = service.status.expect("a status");
        assert_eq!(status.conditions.expect("conditions")[0].type_, "T");
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        for (json, expected) in [
            (
                &br#"{"metadata": 3, "spec": null}"#[..],
                "invalid type: integer `3`",
            ),
            (br#"{"metadata": {}"#, "EOF while parsing"),
        ] {
            let error = decode::<Pod>(json)
                .expect_err("it does not decode")
                .to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
