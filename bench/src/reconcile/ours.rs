//! Kubewright's controller, measured.

use std::sync::Arc;

use anyhow::Result;
use kube::{Client, Config, ResourceExt as _};
use kubewright_runtime::{Context, Controller, Error, Key, Manager, Outcome as Next, Reconciler};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::foo::{self, Foo};
use super::outcome::Outcome;
use super::steps::Running;
use super::{Arguments, Reads};
use crate::cache::client::STAMP;

/// Reports to the desk.
struct Reporter(Arc<Desk>);

impl Reconciler<Foo> for Reporter {
    async fn reconcile(&self, object: Arc<Foo>, cx: &Context) -> Result<Next, Error> {
        let stamp = || object.annotations().get(STAMP).cloned();
        self.0.reconcile(cx.key().name(), stamp).await;
        Ok(Next::done())
    }

    async fn gone(&self, _key: &Key, _cx: &Context) -> Result<Next, Error> {
        self.0.counted();
        Ok(Next::done())
    }
}

/// The orders to the source go through the client; the manager has its own.
pub(super) async fn measure(
    config: Config,
    client: Client,
    arguments: &Arguments,
) -> Result<Outcome> {
    let (desk, probes) = Desk::new();
    let desk = Arc::new(desk);
    let controller = Controller::of::<Foo>("foo")
        .workers(arguments.workers)
        .reconciler(Reporter(desk.clone()));
    let handle = controller.handle();
    let mut managers = JoinSet::new();
    let manager = Manager::from_config(config)?.controller(controller);
    managers.spawn(manager.run_until(CancellationToken::new()));
    let running = Running {
        client,
        desk,
        probes,
        keys: (0..arguments.objects)
            .map(|n| key(n, arguments.reads))
            .collect(),
        add: Box::new(move |key: Key| handle.reconcile(key)),
    };
    let outcome = running.measure(arguments).await;
    managers.abort_all();
    outcome
}

/// The key of the Foo with this number, or of one that is not there.
fn key(number: usize, reads: Reads) -> Key {
    let (namespace, name) = foo::name(number);
    match reads {
        Reads::Object => Key::new(&namespace, &name),
        Reads::None => Key::new(&namespace, &format!("no-{name}")),
    }
}
