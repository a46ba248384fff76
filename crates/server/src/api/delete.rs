//! DELETE of one object and of a collection.

use http::StatusCode;
use kubewright_schema::Table;
use serde_json::{Value, json};

use super::call::Call;
use super::list::{self, Selection};
use super::options::ListOptions;
use crate::admission::Requester;
use crate::http::accept::Protobuf;
use crate::http::body;
use crate::http::query::Query;
use crate::http::respond::{self, Answer};
use crate::object;
use crate::request::Part;
use crate::status::{self, ApiError};
use crate::write::{DeleteOptions, Deleted, WriteRequest, encode_at};

/// Deletes one object.
pub(crate) async fn delete(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    let (options, request) = read(call, body)?;
    delete_with(call, &options, &request).await
}

/// Deletes one object as the options say that another request carries, which was admitted as something else.
pub(crate) async fn delete_by(call: &Call, options: &Value) -> Result<Answer, ApiError> {
    let options = DeleteOptions::of(options, call.query.all("dryRun"))?;
    let request = call.write_request(options.persist, Part::Whole).admitted();
    delete_with(call, &options, &request).await
}

/// Reads the options of a delete from the body, or from the query when there is no body.
fn read(call: &Call, body: &[u8]) -> Result<(DeleteOptions, WriteRequest), ApiError> {
    let (object, dry_run) = if body.is_empty() {
        (from_query(&call.query)?, Vec::new())
    } else {
        (from_body(call, body)?, call.query.all("dryRun").collect())
    };
    let options = DeleteOptions::of(&object, dry_run.into_iter())?;
    let said = object.as_object().cloned().unwrap_or_default();
    let requester = Requester::deleting(call.user.clone(), said);
    let request = call.write_request(options.persist, Part::Whole);
    Ok((options, request.by(requester)))
}

async fn delete_with(
    call: &Call,
    options: &DeleteOptions,
    request: &WriteRequest,
) -> Result<Answer, ApiError> {
    let served = &call.served;
    if options.propagation.is_none() {
        call.warnings
            .extend(call.served.strategy().orphaning_warning.map(str::to_owned));
    }
    match call.core.delete(request, options).await? {
        Deleted::Gone(last, _) if !served.strategy().returns_deleted_object => {
            let status = status::success(served.about(), &call.name, object::uid(&last));
            Ok(respond::typed(
                StatusCode::OK,
                call.accept.format,
                respond::STATUS,
                &status,
            ))
        }
        Deleted::Gone(last, revision) => call.answer_object(
            StatusCode::OK,
            encode_at(served, last, Some(revision)).into(),
        ),
        Deleted::Going(written) => {
            let code = match options.orphan_dependents {
                Some(false) => StatusCode::ACCEPTED,
                _ => StatusCode::OK,
            };
            call.answer_written(code, &written).await
        }
    }
}

/// Deletes every object that the selectors match; answers with the list of what was there.
pub(crate) async fn delete_collection(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    let (options, request) = read(call, body)?;
    let list_options = ListOptions::read(&call.query)?;
    let page = list::select(call, &list_options).await?;
    for record in &page.records {
        let request = request.of(record.namespace(), record.name());
        match call.core.delete(&request, &options).await {
            Ok(_) => {}
            // Somebody else deleted it first, which is what was asked for.
            Err(error) if error.code() == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    let page = Selection {
        from: None,
        remaining: None,
        ..page
    };
    list::answer(call, page).await
}

fn from_query(query: &Query) -> Result<Value, ApiError> {
    let mut object = json!({});
    if let Some(seconds) = query.integer("gracePeriodSeconds")? {
        object["gracePeriodSeconds"] = json!(seconds);
    }
    if let Some(orphan) = query.tristate("orphanDependents") {
        object["orphanDependents"] = json!(orphan);
    }
    if let Some(policy) = query.get("propagationPolicy") {
        object["propagationPolicy"] = json!(policy);
    }
    object["dryRun"] = query.all("dryRun").filter(|v| !v.is_empty()).collect();
    Ok(object)
}

fn from_body(call: &Call, bytes: &[u8]) -> Result<Value, ApiError> {
    let table = Table::builtin();
    let ty = table
        .named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
        .ok_or_else(|| ApiError::internal("DeleteOptions is not in the type table"))?;
    // The options are a built-in kind, whatever is deleted.
    let decoded = body::format(&call.headers, Protobuf::Objects)?
        .decode(table, ty, bytes)
        .map_err(|e| ApiError::bad_request(format!("DeleteOptions cannot be read: {e}")))?;
    // Something that was meant for another purpose must not delete anything.
    match decoded.value.get("kind").and_then(Value::as_str) {
        None | Some("" | "DeleteOptions") => Ok(decoded.value),
        Some(kind) => Err(ApiError::bad_request(format!(
            "decoded object cannot be converted to DeleteOptions: it is a {kind}"
        ))),
    }
}
