//! What `exec`, `attach`, `portforward` and `proxy` begin with: the options of the connection, which are admitted before
//! anything is opened.
//!
//! As in Kubernetes nobody looks for the object before, and what a mutating webhook makes of the options is what the
//! connection is opened with (endpoints/handlers: ConnectResource).

use serde_json::Value;

use crate::admission::connect_options;
use crate::api::call::Call;
use crate::kinds::value::{items, strings, text};
use crate::status::ApiError;

/// The options of a connection, as admission left them.
pub(super) struct ConnectOptions(Value);

impl ConnectOptions {
    /// Reads the options of a request for this subresource and has them admitted. `path` is what follows `proxy`.
    pub(super) async fn admitted(
        call: &Call,
        subresource: &'static str,
        path: &str,
    ) -> Result<Self, ApiError> {
        if call.query.all("dryRun").next().is_some() {
            return Err(ApiError::bad_request("dryRun is not supported"));
        }
        let Some(part) = call.served.resource.subresource(subresource) else {
            return Err(ApiError::no_such_resource());
        };
        let options = connect_options(&part.kind, &call.query, path);
        let options = options.map_err(|why| ApiError::bad_request(why.to_string()))?;
        call.admit_connection(subresource, options).await.map(Self)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// A text; nothing for an empty one.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let text = self.0.get(name).map(text);
        text.filter(|text| !text.is_empty())
    }

    pub(super) fn command(&self) -> Vec<String> {
        let words = self.0.get("command").into_iter().flat_map(strings);
        words.map(str::to_owned).collect()
    }

    pub(super) fn ports(&self) -> Vec<u16> {
        let ports = self.0.get("ports").into_iter().flat_map(items);
        let ports = ports.filter_map(Value::as_u64);
        ports.filter_map(|port| u16::try_from(port).ok()).collect()
    }
}
