//! Talks to the agents of the members, through the API server's proxy to pods.
//!
//! The operator needs no network to the pods, and what it may say to them is in its role.

use std::time::Duration;

use http::{Method, Request};
use kubewright::prelude::*;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::protocol::{AGENT_PORT, BackupOrder, BackupReport, Order, Report};

/// How long an agent may take to answer. One that is slower is treated as one that does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks the agent of a pod for a report with a new nonce. An agent that does not answer has none.
pub(crate) async fn report(pod: &Key, cx: &Context) -> Option<Report> {
    call(pod, Method::GET, "status", Vec::new(), cx).await
}

/// Gives the agent of the backups an order; without one it is asked for its report alone.
pub(crate) async fn back_up(
    pod: &Key,
    order: Option<&BackupOrder>,
    cx: &Context,
) -> Option<BackupReport> {
    let Some(order) = order else {
        return call(pod, Method::GET, "status", Vec::new(), cx).await;
    };
    let body = serde_json::to_vec(order).ok()?;
    call(pod, Method::POST, "order", body, cx).await
}

/// Gives the agent of a pod an order. Whether it obeyed is seen in the next report, so an answer that is lost does no harm.
pub(crate) async fn order(pod: &Key, order: &Order, cx: &Context) -> Option<Report> {
    let body = serde_json::to_vec(order).ok()?;
    call(pod, Method::POST, "order", body, cx).await
}

async fn call<R: DeserializeOwned>(
    pod: &Key,
    method: Method,
    path: &str,
    body: Vec<u8>,
    cx: &Context,
) -> Option<R> {
    let namespace = pod.namespace().unwrap_or_default();
    let uri = format!(
        "/api/v1/namespaces/{namespace}/pods/{}:{AGENT_PORT}/proxy/{path}",
        pod.name()
    );
    let request = Request::builder().method(method).uri(uri);
    let request = request
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .ok()?;
    let answer = timeout(PATIENCE, cx.client().kube().request::<R>(request)).await;
    match answer {
        Ok(Ok(report)) => Some(report),
        Ok(Err(error)) => {
            tracing::debug!(pod = %pod, %error, "an agent does not answer");
            None
        }
        Err(_) => {
            tracing::debug!(pod = %pod, "an agent does not answer in time");
            None
        }
    }
}
