//! `scale`: the number of replicas, spoken of in one way for every kind that has one.

use http::StatusCode;
use kubewright_schema::FieldError;
use kubewright_schema::apply::{Force, Operation, ScaleManager, scale_conflicts};
use kubewright_schema::catalog::Verb;
use kubewright_schema::crd::Scale as ScalePaths;
use kubewright_schema::selector::LabelSelector;
use serde_json::{Value, json};

use crate::api::apply::{Config, MEDIA_TYPE};
use crate::api::call::Call;
use crate::api::patch::Patch;
use crate::api::write::Part;
use crate::fields::{Writer, conflict_error};
use crate::http::body;
use crate::http::query::WriteOptions;
use crate::http::respond::{self, Answer};
use crate::object;
use crate::resource::{Nature, Served};
use crate::status::{About, ApiError};
use kubewright_schema::{Table, decode};

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Answers a request for an object's scale.
pub(crate) async fn dispatch(call: &mut Call, verb: Verb, body: &[u8]) -> Result<Answer, ApiError> {
    match verb {
        Verb::Get => {
            let record = call
                .served
                .collection
                .get(&call.key())
                .ok_or_else(|| call.not_found())?;
            let object = call.core.revive(&call.served, &record).await?;
            let scale = of(&call.served, &object);
            Ok(respond::typed(
                StatusCode::OK,
                call.accept.format,
                SCALE,
                &scale,
            ))
        }
        Verb::Update => {
            let options = WriteOptions::read(&call.query, "UpdateOptions")?;
            let scale = decode_scale(call, body)?;
            let writer = call.writer(&options, "scale");
            write(call, writer, Operation::Update, |_, _| Ok(scale.clone())).await
        }
        _ if body::media_type(&call.headers) == MEDIA_TYPE => apply(call, body).await,
        _ => {
            let options = WriteOptions::read(&call.query, "PatchOptions")?;
            let (patch, duplicates) = Patch::read(call, body)?;
            call.strict(duplicates, options.field_validation)?;
            let (table, ty) = scale_type()?;
            let writer = call.writer(&options, "scale");
            write(call, writer, Operation::Update, |_, scale| {
                let mut new = patch.apply_to(table, ty, scale)?;
                decode::conform(table, ty, &mut new)
                    .map_err(|e| ApiError::bad_request(e.to_string()))?;
                Ok(new)
            })
            .await
        }
    }
}

/// Server-side apply of a scale.
async fn apply(call: &mut Call, bytes: &[u8]) -> Result<Answer, ApiError> {
    let config = Config::read(call, bytes)?;
    let text = |name: &str| config.value[name].as_str().unwrap_or("").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if (api_version.as_str(), kind.as_str()) != ("autoscaling/v1", "Scale") {
        let slash = if api_version.contains('/') { "" } else { "/" };
        return Err(ApiError::bad_request(format!(
            "invalid object type: {slash}{api_version}, Kind={kind}"
        )));
    }
    let writer = call.writer(&config.options, "scale");
    let wanted = config.value["spec"].get("replicas").cloned();
    let (served, manager) = (call.served.clone(), writer.manager.clone());
    write(call, writer, Operation::Apply, |object, scale| {
        let mut scale = scale.clone();
        if let Some(wanted) = &wanted {
            let wanted = wanted.as_i64().unwrap_or(0);
            check_conflicts(&served, object, &manager, wanted, config.force)?;
            scale["spec"]["replicas"] = json!(wanted);
        }
        Ok(scale)
    })
    .await
}

fn check_conflicts(
    served: &Served,
    object: &Value,
    manager: &str,
    wanted: i64,
    force: Force,
) -> Result<(), ApiError> {
    let path = replicas_pointer(served);
    let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let scale = ScaleManager {
        api_version: &served.resource.api_version(),
        manager,
        operation: Operation::Apply,
        replicas: &steps,
    };
    scale_conflicts(&scale, object, wanted, force).map_err(|conflicts| conflict_error(&conflicts))
}

/// Writes the scale that `change` makes of an object and its scale.
async fn write(
    call: &mut Call,
    writer: Writer,
    operation: Operation,
    mut change: impl FnMut(&Value, &Value) -> Result<Value, ApiError> + Send,
) -> Result<Answer, ApiError> {
    let (core, served, key) = (call.core.clone(), call.served.clone(), call.key());
    let writer = writer.scaling(operation, &replicas_pointer(&served));
    let update = |old: &Value| {
        let before = of(&served, old);
        let scale = change(old, &before)?;
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
            &writer,
            &mut call.warnings,
            update,
        )
        .await?;
    let written = core.written(&served, &written).await?;
    let written = serde_json::from_slice(&written).map_err(ApiError::internal)?;
    let scale = of(&served, &written);
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
pub(crate) fn of(served: &Served, value: &Value) -> Value {
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

/// Gives an object the number of replicas that a scale says.
pub(crate) fn put(served: &Served, value: &mut Value, scale: &Value) {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    set_replicas(served, value, replicas);
}

fn set_replicas(served: &Served, value: &mut Value, replicas: i64) {
    let mut place = value;
    for step in replicas_pointer(served).trim_start_matches('/').split('/') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = json!(replicas);
}

/// Where an object says how many replicas there are to be.
fn replicas_pointer(served: &Served) -> String {
    paths(served).map_or("/spec/replicas".to_owned(), |p| {
        pointer(&p.spec_replicas_path)
    })
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
    let decoded = call.body_format()?.decode(table, ty, bytes).map_err(|e| {
        ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {e}"
        ))
    })?;
    Ok(decoded.value)
}
