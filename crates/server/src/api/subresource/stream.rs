//! `exec`, `attach` and `portforward` of pods: a tunnel to the agent of the pod's node.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::connect::ConnectOptions;
use super::log;
use crate::agents::{AgentError, ContainerTarget, NodeAgents, PodTarget, Wanted};
use crate::api::call::Call;
use crate::http::body::full;
use crate::http::respond::{self, Answer};
use crate::http::streaming::{Purpose, Tunnel};
use crate::status::ApiError;

/// Most ports of one request.
const MOST_PORTS: usize = 64;

/// Runs a command in a container.
pub(super) async fn exec(call: &Call) -> Result<Answer, ApiError> {
    let options = ConnectOptions::admitted(call, "exec", "").await?;
    let (agents, target) = container(call, &options)?;
    let wanted = wanted(&options)?;
    let command = options.command();
    if command.is_empty() {
        return Err(ApiError::bad_request(
            "you must specify at least one command for the container",
        ));
    }
    Ok(tunnel(Purpose::Process {
        wanted,
        run: Box::new(move |streams| {
            let exec = agents.exec(target, command, streams);
            Box::pin(async move { exec.await.map(Some) })
        }),
    }))
}

/// Connects to what a container runs.
pub(super) async fn attach(call: &Call) -> Result<Answer, ApiError> {
    let options = ConnectOptions::admitted(call, "attach", "").await?;
    let (agents, target) = container(call, &options)?;
    let wanted = wanted(&options)?;
    Ok(tunnel(Purpose::Process {
        wanted,
        run: Box::new(move |streams| agents.attach(target, streams)),
    }))
}

/// Connects to ports of a pod.
pub(super) async fn port_forward(call: &Call) -> Result<Answer, ApiError> {
    let options = ConnectOptions::admitted(call, "portforward", "").await?;
    let (agents, pod, _) = pod(call)?;
    let ports = options.ports();
    if ports.len() > MOST_PORTS {
        return Err(ApiError::bad_request(format!(
            "more than {MOST_PORTS} ports"
        )));
    }
    Ok(tunnel(Purpose::Ports {
        ports,
        connect: Arc::new(move |port, stream| agents.port_forward(pod.clone(), port, stream)),
    }))
}

/// Which streams a client wants. A terminal has no stream of errors of its own.
fn wanted(options: &ConnectOptions) -> Result<Wanted, ApiError> {
    let flag = |name: &str| options.flag(name);
    let wanted = Wanted {
        stdin: flag("stdin"),
        stdout: flag("stdout"),
        stderr: flag("stderr") && !flag("tty"),
        tty: flag("tty"),
    };
    if !(wanted.stdin || wanted.stdout || wanted.stderr) {
        return Err(ApiError::bad_request(
            "you must specify at least 1 of stdin, stdout, stderr",
        ));
    }
    Ok(wanted)
}

fn container(
    call: &Call,
    options: &ConnectOptions,
) -> Result<(Arc<dyn NodeAgents>, ContainerTarget), ApiError> {
    let (agents, target, pod) = pod(call)?;
    let name = log::container(&call.name, options.text("container"), &pod)?;
    Ok((agents, ContainerTarget::new(target, &name)))
}

/// The pod of a request, and who answers for its node.
fn pod(call: &Call) -> Result<(Arc<dyn NodeAgents>, PodTarget, Value), ApiError> {
    let record = call.served.collection.get(&call.key());
    let record = record.ok_or_else(|| call.not_found())?;
    let pod = call.served.revive(&record)?;
    let target = target_of(&pod)?;
    let agents = call.core.agents.clone();
    let agents = agents.ok_or_else(|| refused(&AgentError::Unreachable(target.node.clone())))?;
    if matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    ) {
        let phase = pod["status"]["phase"].as_str().unwrap_or("");
        return Err(ApiError::bad_request(format!(
            "cannot exec into a container in a completed pod; current phase is {phase}"
        )));
    }
    Ok((agents, target, pod))
}

/// A pod and its node.
pub(super) fn target_of(pod: &Value) -> Result<PodTarget, ApiError> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let (meta, node) = (&pod["metadata"], text(&pod["spec"]["nodeName"]));
    if node.is_empty() {
        return Err(ApiError::bad_request(format!(
            "pod {} does not have a host assigned",
            text(&meta["name"])
        )));
    }
    Ok(PodTarget::new(
        &text(&meta["namespace"]),
        &text(&meta["name"]),
        &text(&meta["uid"]),
        &node,
    ))
}

pub(super) fn refused(error: &AgentError) -> ApiError {
    ApiError::internal(error)
}

fn tunnel(purpose: Purpose) -> Answer {
    let mut answer = respond::answer(StatusCode::OK, "text/plain", full(Bytes::new()));
    answer.extensions_mut().insert(Tunnel::new(purpose));
    answer
}
