//! `scale`: the number of replicas, spoken of in one way for every kind that has one.

use http::StatusCode;
use kubewright_schema::FieldError;
use kubewright_schema::crd::Scale as ScalePaths;
use kubewright_schema::selector::LabelSelector;
use serde_json::{Value, json};

use crate::api::call::Call;
use crate::api::patch::Patch;
use crate::api::write::Part;
use crate::http::body;
use crate::http::query::WriteOptions;
use crate::http::respond::{self, Answer};
use crate::object;
use crate::resource::{Nature, Served};
use crate::status::{About, ApiError};
use kubewright_schema::{Table, decode};

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Answers a request for an object's scale.
pub(crate) async fn dispatch(call: &mut Call, verb: &str, body: &[u8]) -> Result<Answer, ApiError> {
    match verb {
        "get" => {
            let record = call
                .served
                .collection
                .get(&call.key())
                .ok_or_else(|| call.not_found())?;
            let scale = of(&call.served, &call.served.revive(&record)?);
            Ok(respond::typed(
                StatusCode::OK,
                call.accept.format,
                SCALE,
                &scale,
            ))
        }
        "update" => {
            let options = WriteOptions::read(&call.query, "UpdateOptions")?;
            let scale = decode_scale(call, body)?;
            write(call, options, |_| Ok(scale.clone())).await
        }
        _ => {
            let options = WriteOptions::read(&call.query, "PatchOptions")?;
            let (patch, duplicates) = Patch::read(call, body)?;
            call.strict(duplicates, options.field_validation)?;
            let (table, ty) = scale_type()?;
            write(call, options, |scale| {
                let mut new = patch.apply_to(table, ty, scale)?;
                decode::conform(table, ty, &mut new)
                    .map_err(|e| ApiError::bad_request(e.to_string()))?;
                Ok(new)
            })
            .await
        }
    }
}

async fn write(
    call: &mut Call,
    options: WriteOptions,
    mut change: impl FnMut(&Value) -> Result<Value, ApiError> + Send,
) -> Result<Answer, ApiError> {
    let (core, served, key) = (call.core.clone(), call.served.clone(), call.key());
    let update = |old: &Value| {
        let before = of(&served, old);
        let scale = change(&before)?;
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        validate(&scale, replicas)?;
        let mut new = old.clone();
        // An unchanged version is what a patch leaves behind, not what the client insists on; but neither can hurt.
        new["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
        set_replicas(&served, &mut new, replicas);
        Ok(new)
    };
    let written = core
        .update(
            &served,
            &key,
            Part::Whole,
            options.persist,
            &mut call.warnings,
            update,
        )
        .await?;
    let scale = of(&served, &written.value(&served)?);
    Ok(respond::typed(
        StatusCode::OK,
        call.accept.format,
        SCALE,
        &scale,
    ))
}

fn validate(scale: &Value, replicas: i64) -> Result<(), ApiError> {
    if replicas >= 0 {
        return Ok(());
    }
    let error = FieldError::invalid(
        "spec.replicas",
        &json!(replicas),
        "must be greater than or equal to 0",
    );
    Err(ApiError::invalid(
        About {
            group: "autoscaling",
            resource: "Scale",
        },
        object::name(scale),
        &[error],
    ))
}

/// The scale of an object.
fn of(served: &Served, value: &Value) -> Value {
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(found) = object::metadata(value).and_then(|m| m.get(field)) {
            metadata[field] = found.clone();
        }
    }
    let (spec, status, selector) = match paths(served) {
        Some(paths) => custom_parts(value, paths),
        None => builtin_parts(value),
    };
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": { "replicas": spec }, "status": { "replicas": status },
    });
    if let Some(selector) = selector {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

fn builtin_parts(value: &Value) -> (i64, i64, Option<String>) {
    let selector = &value["spec"]["selector"];
    // A ReplicationController's selector is a plain map.
    let selector = match selector
        .get("matchLabels")
        .or(selector.get("matchExpressions"))
    {
        Some(_) => LabelSelector::from_object(selector).ok(),
        None if selector.is_object() => {
            LabelSelector::from_object(&json!({ "matchLabels": selector })).ok()
        }
        None => None,
    };
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    (
        number("/spec/replicas"),
        number("/status/replicas"),
        selector.map(|s| s.to_string()),
    )
}

fn custom_parts(value: &Value, paths: &ScalePaths) -> (i64, i64, Option<String>) {
    let number = |path: &str| {
        value
            .pointer(&pointer(path))
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    let text = |path: &String| {
        value
            .pointer(&pointer(path))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let selector = paths.label_selector_path.as_ref().and_then(text);
    (
        number(&paths.spec_replicas_path),
        number(&paths.status_replicas_path),
        selector,
    )
}

fn set_replicas(served: &Served, value: &mut Value, replicas: i64) {
    let path = paths(served).map_or("/spec/replicas".to_owned(), |p| {
        pointer(&p.spec_replicas_path)
    });
    let mut place = value;
    for step in path.trim_start_matches('/').split('/') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = json!(replicas);
}

fn paths(served: &Served) -> Option<&ScalePaths> {
    match &served.nature {
        Nature::Custom(custom) => custom.scale.as_ref(),
        Nature::Builtin(_) => None,
    }
}

/// `.spec.replicas` as a JSON pointer: scale paths are plain field names.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

fn scale_type() -> Result<(&'static Table, kubewright_schema::TypeId), ApiError> {
    let table = Table::builtin();
    let ty = table
        .named(SCALE)
        .ok_or_else(|| ApiError::internal("Scale is not in the type table"))?;
    Ok((table, ty))
}

fn decode_scale(call: &Call, bytes: &[u8]) -> Result<Value, ApiError> {
    let (table, ty) = scale_type()?;
    let decoded = decode::decode(table, ty, bytes, body::format(&call.headers)?).map_err(|e| {
        ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {e}"
        ))
    })?;
    Ok(decoded.value)
}
