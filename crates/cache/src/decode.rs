//! Reads JSON as Go does: a `null` is a field that is not there.
//!
//! API servers and clients in Go write `null` for a time that was never set, or for a list without items. Generated Rust types
//! mostly take that, but not everywhere: a required timestamp, say, wants a text.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

/// Decodes an object. Where that fails because of its data, it is decoded once more without its nulls; whatever decodes at
/// once costs nothing more.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
///
/// let written_by_go = br#"{"type": "Ready", "status": "True", "reason": "", "message": "", "lastTransitionTime": null}"#;
/// assert!(serde_json::from_slice::<Condition>(written_by_go).is_err());
/// assert!(kubewright_cache::decode::<Condition>(written_by_go).is_ok());
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
        remove_nulls(&mut value);
        serde_json::from_value(value).map_err(|_| error)
    })
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Service};

    use super::*;

    #[test]
    fn nulls_are_fields_that_are_not_there() {
        let service = br#"{"metadata": {"name": "s", "labels": null}, "spec": {"ports": [{"port": 1, "name": null}]},
            "status": {"conditions": [{"type": "T", "status": "True", "lastTransitionTime": null}]}}"#;
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
