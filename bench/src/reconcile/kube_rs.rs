//! kube-rs' controller, measured.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::controller::{Action, Config, Controller};
use kube_runtime::reflector::ObjectRef;
use kube_runtime::watcher;
use tokio::sync::mpsc;

use super::desk::Desk;
use super::foo::{self, Foo};
use super::outcome::Outcome;
use super::steps::Running;
use super::{Arguments, Reads};
use crate::cache::client::STAMP;

/// Keys that may wait in front of the controller: more than are ever added at once.
const CAPACITY: usize = 1 << 20;

pub(super) async fn measure(client: Client, arguments: &Arguments) -> Result<Outcome> {
    if arguments.reads == Reads::None {
        bail!("kube-rs reconciles nothing without an object");
    }
    let (desk, probes) = Desk::new();
    let desk = Arc::new(desk);
    let (sender, mut receiver) = mpsc::channel(CAPACITY);
    let keys = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
    // Zero is without limit.
    let concurrency = u16::try_from(arguments.workers).unwrap_or(0);
    let controller = Controller::new(Api::<Foo>::all(client.clone()), watcher::Config::default())
        .with_config(Config::default().concurrency(concurrency))
        .reconcile_on(keys)
        .run(reconcile, |_, never, _| match *never {}, desk.clone());
    let running = tokio::spawn(controller.for_each(|_| std::future::ready(())));
    let steps = Running {
        client,
        desk,
        probes,
        keys: (0..arguments.objects).map(key).collect(),
        add: Box::new(move |key: ObjectRef<Foo>| {
            // It is full only if the capacity is too small for what is measured, and then the count is never reached.
            let _ = sender.try_send(key);
        }),
    };
    let outcome = steps.measure(arguments).await;
    running.abort();
    outcome
}

async fn reconcile(object: Arc<Foo>, desk: Arc<Desk>) -> Result<Action, Infallible> {
    let stamp = || object.annotations().get(STAMP).cloned();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    desk.reconcile(name, stamp).await;
    Ok(Action::await_change())
}

fn key(number: usize) -> ObjectRef<Foo> {
    let (namespace, name) = foo::name(number);
    ObjectRef::new(&name).within(&namespace)
}
