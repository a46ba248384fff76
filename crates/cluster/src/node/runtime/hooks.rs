//! Hooks of containers that the simulation has started: their programs are asked.
//!
//! Mirrors `lifecycle/handlers.go: handlerRunner.Run`.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Request;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Lifecycle, LifecycleHandler, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_server::{Streams, Wanted};

use super::config::{ContainerConfig, ContainerEvents};
use super::simulation::Simulation;
use super::{ExecTarget, Exit, PodView, Runtime};

/// A hook failed. Events do not say why, so that no secret gets into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hook failed")]
pub(super) struct HookFailed;

/// The hooks of a container that runs, and what they know of it.
#[derive(Debug, Clone)]
pub(super) struct Hooks {
    lifecycle: Lifecycle,
    target: ExecTarget,
    events: ContainerEvents,
}

impl Hooks {
    /// The hooks of a container, if it has some.
    pub(super) fn of(config: &ContainerConfig) -> Option<Self> {
        let target = ExecTarget {
            id: config.id.clone(),
            pod: config.pod.clone(),
            container: config.container.clone(),
            env: config.env.clone(),
            files: config.files.clone(),
        };
        Some(Self {
            lifecycle: config.container.lifecycle.clone()?,
            events: config.events.clone(),
            target,
        })
    }

    /// Runs the hook of a container that has just started. If it fails the container ends, and nobody hears that it ran
    /// before it has.
    pub(super) async fn after_start(
        self,
        simulation: Simulation,
        mut run: BoxFuture<'static, Exit>,
    ) -> BoxFuture<'static, Exit> {
        let Some(handler) = &self.lifecycle.post_start else {
            return run;
        };
        let done = tokio::select! {
            exit = &mut run => return std::future::ready(exit).boxed(),
            done = self.run(&simulation, handler) => done,
        };
        if done.is_ok() {
            return run;
        }
        self.events
            .warn("FailedPostStartHook", "PostStartHook failed");
        self.events.note("Killing", "FailedPostStartHook");
        simulation.stop(&self.target.id, grace_of(&self.target.pod));
        let exit = run.await;
        std::future::ready(exit).boxed()
    }

    /// Runs the hook of a container that is to end, for no longer than its grace period.
    pub(super) async fn before_stop(&self, simulation: &Simulation, grace: Duration) {
        let Some(handler) = &self.lifecycle.pre_stop else {
            return;
        };
        let done = tokio::time::timeout(grace, self.run(simulation, handler)).await;
        if let Ok(Err(HookFailed)) = done {
            self.events.warn("FailedPreStopHook", "PreStopHook failed");
        }
    }

    async fn run(
        &self,
        simulation: &Simulation,
        handler: &LifecycleHandler,
    ) -> Result<(), HookFailed> {
        if let Some(exec) = &handler.exec {
            let command = exec.command.clone().unwrap_or_default();
            let (streams, _) = Streams::pair(Wanted::default());
            let code = simulation.exec(self.target.clone(), command, streams);
            return match code.await {
                Ok(0) => Ok(()),
                _ => Err(HookFailed),
            };
        }
        if let Some(http) = &handler.http_get {
            return self.get(simulation, http).await;
        }
        if let Some(sleep) = &handler.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or(0);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
        Ok(())
    }

    /// Any answer will do, whatever its status.
    async fn get(&self, simulation: &Simulation, http: &HTTPGetAction) -> Result<(), HookFailed> {
        let port = port_number(&http.port, &self.target.container).ok_or(HookFailed)?;
        let mut request = Request::get(http.path.as_deref().unwrap_or("/"));
        for header in http.http_headers.iter().flatten() {
            request = request.header(&header.name, &header.value);
        }
        let request = request.body(Bytes::new()).map_err(|_| HookFailed)?;
        let pod = PodView {
            pod: self.target.pod.clone(),
            running: vec![self.target.id.clone()],
        };
        let answer = simulation.http(pod, port, request).await;
        answer.map(drop).map_err(|_| HookFailed)
    }
}

/// The number of a port, which may be the name of one that the container has.
fn port_number(port: &IntOrString, container: &Container) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_deref() == Some(name));
            named?.container_port
        }
    };
    u16::try_from(number).ok()
}

fn grace_of(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.termination_grace_period_seconds);
    Duration::from_secs(u64::try_from(seconds.unwrap_or(30)).unwrap_or(0))
}
