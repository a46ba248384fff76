//! Whether the servers that are added to the API can be reached: the condition `Available` of their APIServices, and what
//! discovery lists of them (`kube-aggregator: remote_available_controller.go`).

use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use kubewright_schema::catalog::Resource;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::aggregation::{Forwarded, Remote, discovered};
use crate::auth::User;
use crate::core::Core;
use crate::definitions::{ConditionUpdate, set_condition};
use crate::request::Part;
use crate::status::ApiError;
use crate::write::WriteRequest;

/// How long another server may take to say what it serves.
const PATIENCE: Duration = Duration::from_secs(5);
/// How soon a server that was reached is asked again, and one that was not.
const REACHED: Duration = Duration::from_secs(30);
const UNREACHED: Duration = Duration::from_secs(5);
/// The largest list of resources.
const MAX_LIST: usize = 4 * 1024 * 1024;

/// Asks the servers that APIServices name what they serve, until this server stops. Does not keep it alive.
pub(crate) async fn follow_api_services(core: Weak<Core>, stopping: CancellationToken) {
    loop {
        let Some(server) = core.upgrade() else { return };
        let aggregation = server.derived.aggregation.clone();
        let pause = server.check_api_services().await;
        drop(server);
        let again = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stopping.cancelled() => return,
            () = aggregation.changed.notified() => {}
            () = again => {}
        }
    }
}

/// Why another server did not say what it serves.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error("{0}")]
    Unreachable(ApiError),
    #[error("bad status: {0}")]
    Status(StatusCode),
    #[error("the answer broke off or is too large")]
    Body,
    #[error("the answer is not a list of resources")]
    NotAList,
    #[error("context deadline exceeded")]
    TooLate,
}

impl Core {
    /// Asks all of them once. Says how long the answers are good; nothing when there is nobody to ask.
    async fn check_api_services(&self) -> Option<Duration> {
        let remotes = self.derived.aggregation.all();
        self.registry
            .keep_elsewhere(remotes.iter().map(|remote| &remote.gv));
        let checks = remotes.iter().map(|remote| self.check_api_service(remote));
        let reached = futures::future::join_all(checks).await;
        let pause = |reached: bool| if reached { REACHED } else { UNREACHED };
        reached.into_iter().map(pause).min()
    }

    /// Asks one, and writes down whether it answered.
    async fn check_api_service(&self, remote: &Remote) -> bool {
        let checked = match tokio::time::timeout(PATIENCE, self.discover(remote)).await {
            Ok(checked) => checked,
            Err(_) => Err(CheckError::TooLate),
        };
        let update = match &checked {
            Ok(_) => ("True", "Passed", "all checks passed".to_owned()),
            Err(error) => (
                "False",
                "FailedDiscoveryCheck",
                format!("failing or missing response: {error}"),
            ),
        };
        let reached = checked.is_ok();
        if let Ok(resources) = checked {
            self.registry.serve_elsewhere(&remote.gv, resources);
        }
        if let Err(error) = self.write_availability(&remote.name, update).await {
            tracing::warn!(name = remote.name, %error, "the availability of an APIService could not be written");
        }
        reached
    }

    async fn discover(&self, remote: &Remote) -> Result<Vec<Resource>, CheckError> {
        let path = format!("/apis/{}/{}", remote.gv.group, remote.gv.version);
        let uri: Uri = path.parse().map_err(|_| CheckError::NotAList)?;
        let accept = (ACCEPT, HeaderValue::from_static("application/json"));
        let headers = HeaderMap::from_iter([accept]);
        let user = User::new("system:kube-aggregator", ["system:masters"]);
        let request = Forwarded {
            method: Method::GET,
            uri: &uri,
            headers: &headers,
            user: &user,
            body: Bytes::new(),
        };
        let answer = self.pass_on(remote, request).await;
        let answer = answer.map_err(CheckError::Unreachable)?;
        if !answer.status().is_success() {
            return Err(CheckError::Status(answer.status()));
        }
        let body = Limited::new(answer.into_body(), MAX_LIST).collect().await;
        let body = body.map_err(|_| CheckError::Body)?.to_bytes();
        discovered(&remote.gv, &body).ok_or(CheckError::NotAList)
    }

    async fn write_availability(
        &self,
        name: &str,
        (status, reason, message): (&str, &str, String),
    ) -> Result<(), ApiError> {
        let served = self.api_services();
        let now = self.environment.now_rfc3339();
        let update = ConditionUpdate {
            kind: "Available",
            status,
            reason,
            message: &message,
        };
        let change = |old: &Value| {
            let mut new = old.clone();
            set_condition(&mut new["status"], &now, &update);
            Ok(new)
        };
        let request = WriteRequest::by_server(&served, name, Part::Status);
        match Box::pin(self.update(&request, change)).await {
            Err(error) if error.code() != StatusCode::NOT_FOUND => Err(error),
            _ => Ok(()),
        }
    }
}
