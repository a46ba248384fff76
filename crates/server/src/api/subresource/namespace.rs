//! `namespaces/finalize`: the one way to change `spec.finalizers`.

use http::StatusCode;
use serde_json::Value;

use crate::api::call::Call;
use crate::api::write::Part;
use crate::http::query::WriteOptions;
use crate::http::respond::Answer;
use crate::kinds::namespace;
use crate::status::ApiError;

/// Replaces the finalizers of a namespace; the last one to go lets the namespace go.
pub(crate) async fn finalize(call: &mut Call, body: &[u8]) -> Result<Answer, ApiError> {
    let options = WriteOptions::read(&call.query, "UpdateOptions")?;
    let incoming = call.served.decode(body, call.body_format()?)?;
    let finalizers = incoming.object["spec"]["finalizers"].clone();
    let version = incoming.object["metadata"]["resourceVersion"].clone();
    let (core, served, key) = (call.core.clone(), call.served.clone(), call.key());
    let name = call.name.clone();
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
            Err(ApiError::invalid(served.about_kind(), &name, &errors))
        }
    };
    let writer = call.writer(&options, "finalize");
    let written = core
        .update(
            &served,
            &key,
            Part::Own,
            &writer,
            &mut call.warnings,
            change,
        )
        .await?;
    call.answer_written(StatusCode::OK, &written).await
}
