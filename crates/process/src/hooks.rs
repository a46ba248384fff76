//! Hooks of containers: what runs after a container has started and before it is asked to end.
//!
//! Mirrors `pkg/kubelet/lifecycle/handlers.go` with its texts.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use kubewright_cluster::node::runtime::PodId;

use crate::container::Running;
use crate::session::Call;
use crate::{exec, probe};

/// Why a hook failed, as the message of an event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    #[error("Exec lifecycle hook ([{command}]) {whose} failed - error: {why}, message: {output:?}")]
    Exec {
        command: String,
        whose: String,
        why: String,
        output: String,
    },
    #[error("HTTP lifecycle hook ({path}) {whose} failed - error: {why}")]
    Http {
        path: String,
        whose: String,
        why: probe::ProbeError,
    },
}

/// Runs a hook of a container to its end.
///
/// # Errors
/// When the hook fails.
pub(crate) async fn run(
    handler: &LifecycleHandler,
    (pod, container): (&PodId, &Container),
    call: &Call,
    running: &Running,
) -> Result<(), HookError> {
    let whose = format!(
        "for Container {:?} in Pod {:?}",
        container.name,
        pod.to_string()
    );
    if let Some(action) = &handler.exec {
        let command = action.command.clone().unwrap_or_default();
        let shown = command.join(" ");
        let failed = |why: String, output: String| {
            Err(HookError::Exec {
                command: shown.clone(),
                whose,
                why,
                output,
            })
        };
        return match exec::capture(call, running, command).await {
            Ok((0, _)) => Ok(()),
            Ok((code, output)) => {
                let error = format!("command '{shown}' exited with {code}: {output}");
                failed(error, output)
            }
            Err(error) => failed(error.0, String::new()),
        };
    }
    if let Some(action) = &handler.http_get {
        let address = running.address.unwrap_or(Ipv4Addr::LOCALHOST);
        let sent = probe::http_get(action, container, address).await;
        let path = action.path.clone().unwrap_or("/".to_owned());
        return sent.map_err(|why| HookError::Http { path, whose, why });
    }
    if let Some(action) = &handler.sleep {
        let seconds = u64::try_from(action.seconds).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    // `tcpSocket` is in the API for compatibility and does nothing.
    Ok(())
}
