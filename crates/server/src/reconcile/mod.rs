//! Works off the queue: what the server itself writes because of other writes.

mod addresses;
mod api_services;
mod availability;
mod definition;
mod teardown;

use std::sync::Weak;

use http::StatusCode;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::access::follow;
use crate::core::Core;
use crate::derived::{DEFINITIONS, Outcome, SERVICE_CIDRS, SERVICES, Task};
use crate::request::Part;
use crate::resource::Served;
use crate::status::ApiError;
use crate::write::WriteRequest;

pub(crate) use availability::follow_api_services;

/// Works off the queue of a server until it stops. Does not keep the server alive.
pub(crate) async fn run(core: Weak<Core>, stopping: CancellationToken) {
    let Some(derived) = core.upgrade().map(|core| core.derived.clone()) else {
        return;
    };
    loop {
        while let Some(core) = core.upgrade() {
            // One task at a time, so that of two definitions with the same names one is first.
            if !core.reconcile_next().await {
                break;
            }
        }
        tokio::select! {
            () = stopping.cancelled() => return,
            () = derived.queue.ready() => {}
        }
    }
}

impl Core {
    /// Waits until the server has done what follows from a write of this resource, so that whoever has the answer finds
    /// definitions established, aggregated roles up to date and the IPAddresses of Services there. A courtesy: it is done whether or not anybody waits.
    pub(crate) async fn wait_for_tasks(&self, served: &Served) {
        let is_awaited = [DEFINITIONS, SERVICES, SERVICE_CIDRS].contains(&served.collection.name());
        if is_awaited || served.is_terminating() {
            self.derived.queue.objects_tried().await;
        } else if follow::is_policy(served) {
            self.derived.queue.roles_done().await;
        }
    }

    /// Does all that is to be done now.
    pub(crate) async fn reconcile_all(&self) {
        while self.reconcile_next().await {}
    }

    /// Does the next task; says whether there was one.
    async fn reconcile_next(&self) -> bool {
        let queue = &self.derived.queue;
        let Some(taken) = queue.take() else {
            return false;
        };
        let outcome = match self.reconcile(&taken.task).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::warn!(task = ?taken.task, %error, "will be tried again");
                Outcome::Failed
            }
        };
        queue.finish(taken, outcome);
        true
    }

    async fn reconcile(&self, task: &Task) -> Result<Outcome, ApiError> {
        match task {
            Task::Definition(name) => self.reconcile_definition(name).await,
            Task::ClusterRole(name) => self.reconcile_cluster_role(name).await,
            Task::IpAddress(name) => self.reconcile_ip_address(name).await,
            Task::ServiceCidr(name) => self.reconcile_service_cidr(name).await,
        }
    }

    /// Brings the rules of an aggregated role up to date; they are filled in on the way, as with every write of one.
    async fn reconcile_cluster_role(&self, name: &str) -> Result<Outcome, ApiError> {
        let roles = self
            .registry
            .now()
            .builtin("rbac.authorization.k8s.io", "v1", "clusterroles");
        let same = |old: &Value| Ok(old.clone());
        let request = WriteRequest::by_server(&roles, name, Part::Whole);
        match self.update(&request, same).await {
            Err(error) if error.code() != StatusCode::NOT_FOUND => Err(error),
            _ => Ok(Outcome::Done),
        }
    }
}
