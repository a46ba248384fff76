//! kube-rs' watcher and reflector, measured.

use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::watcher::{self, Event};
use kube_runtime::{WatchStreamExt as _, reflector, watcher as watch};
use tokio::sync::oneshot;

use super::client::{Arguments, Control, Form, Listener, STAMP};
use super::outcome::Outcome;
use crate::machine;
use crate::stopwatch::Stopwatch;

pub(crate) async fn measure(client: Client, arguments: &Arguments) -> Result<Outcome> {
    if arguments.form != Form::Typed {
        bail!("kube-rs is measured with typed objects");
    }
    let (store, writer) = reflector::store::<Pod>();
    let api = Api::<Pod>::all(client.clone());
    let events = watch(api, watcher::Config::default()).default_backoff();
    let events = reflector(writer, events);
    let listener = Arc::new(Listener::default());
    let mut outcome = Outcome {
        base: machine::own("VmRSS:"),
        ..Outcome::default()
    };
    let (synced, is_synced) = oneshot::channel();
    let stopwatch = Stopwatch::start();
    let running = tokio::spawn({
        let listener = listener.clone();
        async move {
            let mut synced = Some(synced);
            let mut events = pin!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::InitDone) => drop(synced.take().map(|synced| synced.send(()))),
                    Ok(Event::Apply(pod)) => {
                        listener.heard(pod.annotations().get(STAMP).map(String::as_str));
                    }
                    _ => {}
                }
            }
        }
    });
    is_synced.await.context("the watcher ended")?;
    outcome.sync_seconds = stopwatch.elapsed().as_secs_f64();
    if store.len() != arguments.pods {
        bail!("{} of {} pods are there", store.len(), arguments.pods);
    }
    let control = Control {
        client,
        listener: &listener,
        arguments,
    };
    control.settle(&mut outcome).await;
    let (rate, p50, p99) = control.events().await?;
    outcome.events_per_second = rate;
    outcome.latency_p50_seconds = p50.as_secs_f64();
    outcome.latency_p99_seconds = p99.as_secs_f64();
    control.relist(&mut outcome).await?;
    running.abort();
    Ok(outcome)
}
