//! A cluster with an operator on it, and a clock that goes as fast as the test.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::time::Duration;

use kubewright::prelude::*;
use kubewright::runtime::Environment;
use kubewright::runtime::controller::Handle;
use kubewright::runtime::environment::VirtualClock;
use kubewright::runtime::manager::ManagerError;
use kubewright_server::{ApiService, Server};
use kubewright_testing::Wire;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An operator that runs.
pub(crate) struct Operator {
    /// Its controller.
    pub(crate) handle: Handle,
    /// Its line to the server.
    pub(crate) wire: Wire,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

/// A client of the administrator, which reads from the server.
pub(crate) fn admin(server: &Server) -> Client {
    Client::new(kube::Client::new(server.service(), "default"))
}

impl Operator {
    /// Runs a controller over a line of its own.
    pub(crate) fn start(
        service: ApiService,
        controller: impl FnOnce(&Client) -> Controller,
    ) -> Self {
        Self::start_on(Wire::new(service), controller)
    }

    /// Runs a controller over this line.
    pub(crate) fn start_on(wire: Wire, controller: impl FnOnce(&Client) -> Controller) -> Self {
        let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let manager = Manager::new(wire.client())
            .name("pod-printer")
            .cache(kubewright_example_pod_printer::cache())
            .environment(Environment::seeded(clock, 1));
        let controller = controller(&manager.client());
        let handle = controller.handle();
        let stop = CancellationToken::new();
        let task = tokio::spawn(manager.controller(controller).run_until(stop.clone()));
        Self {
            handle,
            wire,
            stop,
            task,
        }
    }

    /// How many writes it has sent.
    pub(crate) fn writes(&self) -> usize {
        let calls = self.wire.calls();
        calls
            .iter()
            .filter(|(call, _)| call.verb.is_write())
            .count()
    }

    /// Stops it, and gives how it ended.
    pub(crate) async fn end(self) -> Result<(), ManagerError> {
        self.stop.cancel();
        self.task.await.expect("the manager does not panic")
    }
}

/// Lets everything that is under way come to rest.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}
