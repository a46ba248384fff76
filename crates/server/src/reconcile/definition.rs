//! Definitions: accepts their names, or continues to tear them down.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use crate::core::Core;
use crate::definitions::next_status;
use crate::derived::Outcome;
use crate::kinds::value::text;
use crate::object;
use crate::request::Part;
use crate::resource::Served;
use crate::status::ApiError;
use crate::write::WriteRequest;

impl Core {
    /// Accepts the names of a definition as it is now, or continues to tear it down.
    pub(super) async fn reconcile_definition(&self, name: &str) -> Result<Outcome, ApiError> {
        let definitions = self.definitions();
        let Some(record) = definitions.collection.get(name) else {
            return Ok(Outcome::Done);
        };
        let value = definitions.revive(&record)?;
        if object::is_deleting(&value) {
            return self.tear_down(&definitions, &value).await;
        }
        let group = text(&value["spec"]["group"]);
        if self.definition_status(name, &value) == value["status"] {
            self.reconcile_api_services(group).await?;
            return Ok(Outcome::Done);
        }
        // Computed from what is current at each attempt: somebody may write the definition meanwhile.
        let change = |old: &Value| {
            let mut new = old.clone();
            if !object::is_deleting(old) {
                new["status"] = self.definition_status(name, old);
            }
            Ok(new)
        };
        self.write_definition(&definitions, name, change).await?;
        self.reconcile_api_services(group).await?;
        Ok(Outcome::Done)
    }

    fn definitions(&self) -> Arc<Served> {
        self.registry
            .now()
            .builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    }

    /// The status that a definition should have now.
    fn definition_status(&self, name: &str, value: &Value) -> Value {
        let now = self.environment.now_rfc3339();
        next_status(&self.registry.now(), &now, name, value)
    }

    pub(super) async fn write_definition(
        &self,
        definitions: &Arc<Served>,
        name: &str,
        change: impl FnMut(&Value) -> Result<Value, ApiError> + Send,
    ) -> Result<(), ApiError> {
        let request = WriteRequest::by_server(definitions, name, Part::Own("status"));
        match self.update(&request, change).await {
            Err(error) if error.code() != StatusCode::NOT_FOUND => Err(error),
            _ => Ok(()),
        }
    }
}
