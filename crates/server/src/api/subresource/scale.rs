//! `scale`: the number of replicas, spoken of in one way for every kind that has one.

use http::StatusCode;
use kubewright_schema::FieldError;
use kubewright_schema::apply::{Force, Operation, ScaleManager, scale_conflicts};
use kubewright_schema::catalog::Verb;
use serde_json::{Value, json};

use crate::api::apply::{Config, MEDIA_TYPE};
use crate::api::call::Call;
use crate::api::patch::Patch;
use crate::http::body;
use crate::http::query::WriteOptions;
use crate::http::respond::{self, Answer};
use crate::object;
use crate::request::Part;
use crate::resource::Served;
use crate::resource::scale::{of, replicas_pointer, set_replicas};
use crate::status::{About, ApiError};
use crate::write::{WriteRequest, conflict_error};
use kubewright_schema::Table;

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Answers a request for an object's scale.
pub(crate) async fn dispatch(call: &Call, verb: Verb, body: &[u8]) -> Result<Answer, ApiError> {
    match verb {
        Verb::Get => {
            let record = call
                .served
                .collection
                .get(&call.key())
                .ok_or_else(|| call.not_found())?;
            let object = call.core.converter.revive(&call.served, &record).await?;
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
            let request = call.write_request(options.persist, Part::Scale);
            write(call, request, Operation::Update, |_, _| Ok(scale.clone())).await
        }
        _ if body::media_type(&call.headers) == MEDIA_TYPE => apply(call, body).await,
        _ => {
            let options = WriteOptions::read(&call.query, "PatchOptions")?;
            let patch = Patch::read(call, body, options.field_validation)?;
            let scale = scale_type()?;
            let request = call.write_request(options.persist, Part::Scale);
            write(call, request, Operation::Update, |_, old| {
                let (new, complaints) = patch.apply_to(scale, old)?;
                call.warnings.extend(complaints);
                Ok(new)
            })
            .await
        }
    }
}

/// Server-side apply of a scale.
async fn apply(call: &Call, bytes: &[u8]) -> Result<Answer, ApiError> {
    let config = Config::read(call, bytes)?;
    let text = |name: &str| config.value[name].as_str().unwrap_or("").to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if (api_version.as_str(), kind.as_str()) != ("autoscaling/v1", "Scale") {
        let slash = if api_version.contains('/') { "" } else { "/" };
        return Err(ApiError::bad_request(format!(
            "invalid object type: {slash}{api_version}, Kind={kind}"
        )));
    }
    let request = call.write_request(config.options.persist, Part::Scale);
    let wanted = config.value["spec"].get("replicas").cloned();
    let (served, manager) = (call.served.clone(), request.manager.clone());
    write(call, request, Operation::Apply, |object, scale| {
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
    call: &Call,
    request: WriteRequest,
    operation: Operation,
    mut change: impl FnMut(&Value, &Value) -> Result<Value, ApiError> + Send,
) -> Result<Answer, ApiError> {
    let served = &call.served;
    let request = request.scaling(operation, &replicas_pointer(served));
    let update = |old: &Value| {
        let before = of(served, old);
        let scale = change(old, &before)?;
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        validate(&scale, replicas)?;
        let mut new = old.clone();
        // An unchanged version is what a patch leaves behind, not what the client insists on; but neither can hurt.
        new["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
        set_replicas(served, &mut new, replicas);
        Ok(new)
    };
    let written = call.core.update(&request, update).await?;
    let written = call.core.written(served, &written).await?;
    let written = serde_json::from_slice(&written).map_err(ApiError::internal)?;
    let scale = of(served, &written);
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
