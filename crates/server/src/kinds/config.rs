//! ConfigMaps and Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::{Map, Value};

use super::checks::{Errors, immutable, invalid_each};
use super::path::Path;
use super::strategy::{FieldLabels, Strategy, UpdateOrder};
use super::value::{
    alike, ensure, entries, is_empty, is_true, map, remove, set, set_default_text, text,
};

/// Largest sum of the sizes of all values.
const MAX_SIZE: usize = 1024 * 1024;

const DATA: Path<'static> = Path::Root("data");

/// ConfigMaps.
pub(super) static CONFIG_MAP: Strategy = Strategy {
    update_order: UpdateOrder::ChangeFirst,
    validate: validate_config_map,
    validate_update: |new, old, errors| validate_sealed(new, old, &["data", "binaryData"], errors),
    ..Strategy::PLAIN
};

/// Secrets.
pub(super) static SECRET: Strategy = Strategy {
    update_order: UpdateOrder::ChangeFirst,
    field_labels: FieldLabels::Listed(&["type", "metadata.namespace", "metadata.name"]),
    default: default_secret,
    update: |new, old| {
        if is_empty(&new["type"]) && !is_empty(&old["type"]) {
            set(new, "type", old["type"].clone());
        }
    },
    validate: validate_secret,
    validate_update: |new, old, errors| {
        immutable(&new["type"], &old["type"], &Path::Root("type"), errors);
        validate_sealed(new, old, &["data"], errors);
    },
    fields: |object| vec![("type", text(&object["type"]).to_owned())],
    ..Strategy::PLAIN
};

/// `stringData` is for writing only: it lands in `data`, over what is there.
fn default_secret(object: &mut Value) {
    set_default_text(object, "type", "Opaque");
    let Some(Value::Object(plain)) = remove(object, "stringData") else {
        return;
    };
    let encoded: Map<String, Value> = plain
        .iter()
        .map(|(key, value)| (key.clone(), STANDARD.encode(text(value)).into()))
        .collect();
    if !encoded.is_empty() {
        map(ensure(object, "data")).extend(encoded);
    }
}

fn decoded_size(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|b| *b == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding)
}

fn validate_keys(data: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (key, _) in entries(data) {
        invalid_each(
            names::config_map_key(key),
            key.as_str(),
            &path.key(key),
            errors,
        );
    }
}

fn validate_config_map(object: &Value, errors: &mut Errors) {
    let (data, binary) = (&object["data"], &object["binaryData"]);
    let mut size = 0;
    for (key, value) in entries(data) {
        invalid_each(
            names::config_map_key(key),
            key.as_str(),
            &DATA.key(key),
            errors,
        );
        if binary.get(key).is_some() {
            let text = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(
                DATA.key(key),
                &key.as_str().into(),
                text,
            ));
        }
        size += text(value).len();
    }
    validate_keys(binary, &Path::Root("binaryData"), errors);
    size += entries(binary)
        .map(|(_, value)| decoded_size(text(value)))
        .sum::<usize>();
    if size > MAX_SIZE {
        // The server names no field here, and writes that as an empty index.
        errors.push(FieldError::too_long("[]", MAX_SIZE));
    }
}

fn validate_secret(object: &Value, errors: &mut Errors) {
    let data = &object["data"];
    validate_keys(data, &DATA, errors);
    let size: usize = entries(data)
        .map(|(_, value)| decoded_size(text(value)))
        .sum();
    if size > MAX_SIZE {
        errors.push(FieldError::too_long(DATA, MAX_SIZE));
    }
    let mut require = |missing: bool, key: &str| {
        if missing {
            errors.push(FieldError::required(DATA.key(key), ""));
        }
    };
    let absent = |key: &str| data.get(key).is_none();
    match text(&object["type"]) {
        "kubernetes.io/service-account-token" => validate_token(object, errors),
        "kubernetes.io/dockercfg" => validate_docker(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => validate_docker(data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" => {
            let neither = absent("username") && absent("password");
            require(neither, "username");
            require(neither, "password");
        }
        "kubernetes.io/ssh-auth" => {
            require(is_empty(&data["ssh-privatekey"]), "ssh-privatekey");
        }
        "kubernetes.io/tls" => {
            require(absent("tls.crt"), "tls.crt");
            require(absent("tls.key"), "tls.key");
        }
        _ => {}
    }
}

fn validate_token(object: &Value, errors: &mut Errors) {
    let key = "kubernetes.io/service-account.name";
    if is_empty(&object["metadata"]["annotations"][key]) {
        let path = Path::Root("metadata.annotations");
        errors.push(FieldError::required(path.key(key), ""));
    }
}

fn validate_docker(data: &Value, key: &str, errors: &mut Errors) {
    let Some(encoded) = data.get(key).and_then(Value::as_str) else {
        errors.push(FieldError::required(DATA.key(key), ""));
        return;
    };
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<Map<String, Value>>(&bytes) {
        let redacted = "<secret contents redacted>".into();
        let text = docker_error(&bytes, &error);
        errors.push(FieldError::invalid(DATA.key(key), &redacted, &text));
    }
}

fn docker_error(bytes: &[u8], error: &serde_json::Error) -> String {
    if bytes.is_empty() || error.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else {
        error.to_string()
    }
}

/// An object with `immutable` set keeps its data and the mark itself.
fn validate_sealed(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !is_true(&old["immutable"]) {
        return;
    }
    let text = "field is immutable when `immutable` is set";
    if !is_true(&new["immutable"]) {
        errors.push(FieldError::forbidden("immutable", text));
    }
    for field in fields {
        if !alike(&new[*field], &old[*field]) {
            errors.push(FieldError::forbidden(*field, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::{create, create_errors, update_errors};

    fn named(mut object: Value) -> Value {
        object["metadata"] = json!({"name": "c", "namespace": "default"});
        object
    }

    #[test]
    fn plain_text_becomes_data() {
        let object = create(
            "",
            "Secret",
            named(json!({"stringData": {"a": "hello"}, "data": {"a": "eA==", "b": "eA=="}})),
        );
        assert_eq!(object["data"], json!({"a": "aGVsbG8=", "b": "eA=="}));
        assert!(object.get("stringData").is_none());
        assert_eq!(object["type"], "Opaque");
    }

    #[test]
    fn each_broken_entry_is_named() {
        for (kind, object, expect) in [
            (
                "ConfigMap",
                json!({"data": {"a": "x"}, "binaryData": {"a": "eA=="}}),
                "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
            ),
            (
                "ConfigMap",
                json!({"data": {"a": "x".repeat(MAX_SIZE + 1)}}),
                "[]: Too long: may not be more than 1048576 bytes",
            ),
            (
                "ConfigMap",
                json!({"data": {"a/b": "x"}}),
                "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ),
            (
                "Secret",
                json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}),
                "data[tls.key]: Required value",
            ),
            (
                "Secret",
                json!({"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": ""}}),
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": unexpected end of JSON input",
            ),
            (
                "Secret",
                json!({"type": "kubernetes.io/service-account-token"}),
                "metadata.annotations[kubernetes.io/service-account.name]: Required value",
            ),
        ] {
            assert_eq!(create_errors("", kind, named(object)), [expect]);
        }
    }

    #[test]
    fn sealed_objects_stay() {
        let sealed = || named(json!({"immutable": true, "data": {"a": "eA=="}}));
        let edit = |new: &mut Value| {
            new["immutable"] = json!(false);
            new["data"] = json!({});
        };
        let expect = [
            "immutable: Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        ];
        for kind in ["ConfigMap", "Secret"] {
            assert_eq!(update_errors("", kind, sealed(), edit), expect, "{kind}");
        }
        let retype = |new: &mut Value| new["type"] = json!("x");
        assert_eq!(
            update_errors("", "Secret", named(json!({})), retype),
            ["type: Invalid value: \"x\": field is immutable"]
        );
    }
}
