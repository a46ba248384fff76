//! `namespaces/finalize`: the one way to change `spec.finalizers`.

use http::StatusCode;
use serde_json::Value;

use crate::api::call::Call;
use crate::http::query::WriteOptions;
use crate::http::respond::Answer;
use crate::kinds::namespace;
use crate::request::Part;
use crate::status::ApiError;

/// Replaces the finalizers of a namespace; the last one to go lets the namespace go.
pub(crate) async fn finalize(call: &Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "UpdateOptions")?;
    let incoming = call.served.decode(body, call.body_format()?)?;
    let finalizers = incoming.object["spec"]["finalizers"].clone();
    let version = incoming.object["metadata"]["resourceVersion"].clone();
    let change = |old: &Value| {
        let mut new = old.clone();
        new["metadata"]["resourceVersion"] = version.clone();
        match &finalizers {
            Value::Array(list) if !list.is_empty() => {
                new["spec"]["finalizers"] = finalizers.clone()
            }
            _ => drop(
                new["spec"]
                    .as_object_mut()
                    .map(|spec| spec.remove("finalizers")),
            ),
        }
        let errors = namespace::validate_finalize(&new);
        if errors.is_empty() {
            Ok(new)
        } else {
            Err(ApiError::invalid(
                call.served.about_kind(),
                &call.name,
                &errors,
            ))
        }
    };
    let request = call.write_request(options.persist, Part::Own("finalize"));
    let written = call.core.update(&request, change).await?;
    call.answer_written(StatusCode::OK, &written).await
}
