//! Kubewright's informer, measured.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_cache::reflector::Options;
use kubewright_cache::{
    Event, Index, Keep, Key, Kind, ListWatch, NAMESPACE_INDEX, Reader, Scope, Shape, SharedInformer,
};
use tokio_util::sync::CancellationToken;

use super::client::{Arguments, Control, Form, Listener, STAMP};
use super::outcome::Outcome;
use crate::machine;
use crate::source::template::{NAMESPACES, POSTINGS};
use crate::stopwatch::Stopwatch;

const INSTANCE: &str = "app.kubernetes.io/instance";
/// Reads go through the pods in steps of this; it divides no count in use.
const STRIDE: usize = 7_919;
/// How long a read of the store is repeated.
const READ_FOR: Duration = Duration::from_secs(1);

/// What the handler does with an object: looks at its metadata, or decodes it.
const LOOKS: u8 = 0;
const DECODES: u8 = 1;

pub(crate) async fn measure(client: Client, arguments: &Arguments) -> Result<Outcome> {
    let pods = ApiResource::erase::<Pod>(&());
    let scope = Scope::all();
    match arguments.form {
        Form::Typed | Form::Decoded => {
            let source = ListWatch::typed::<Pod>(client.clone(), scope);
            follow::<Pod>(source, client, arguments).await
        }
        Form::Dynamic => {
            let source = ListWatch::dynamic(client.clone(), pods, scope);
            follow::<DynamicObject>(source, client, arguments).await
        }
        Form::Metadata => {
            let source = ListWatch::metadata(client.clone(), pods, scope);
            follow::<PartialObjectMeta<DynamicObject>>(source, client, arguments).await
        }
    }
}

async fn follow<K: Kind>(
    source: ListWatch,
    client: Client,
    arguments: &Arguments,
) -> Result<Outcome> {
    let keep = match arguments.form {
        Form::Decoded => Keep::Decoded,
        _ => Keep::Compact,
    };
    let options = Options::default().shape(Shape::default().keep(keep));
    let informer = SharedInformer::<K>::new(source, options);
    let reader = informer.reader();
    reader.add_index(NAMESPACE_INDEX, Index::by_namespace())?;
    reader.add_index("instance", Index::by_label(INSTANCE))?;
    let listener = Arc::new(Listener::default());
    let attitude = Arc::new(AtomicU8::new(LOOKS));
    let registration = informer.add_handler(handler::<K>(listener.clone(), attitude.clone()))?;
    let mut outcome = Outcome {
        base: machine::own("VmRSS:"),
        ..Outcome::default()
    };
    let stopwatch = Stopwatch::start();
    let running = tokio::spawn({
        let informer = informer.clone();
        async move { informer.run(CancellationToken::new()).await }
    });
    registration.synced().await?;
    outcome.sync_seconds = stopwatch.elapsed().as_secs_f64();
    if reader.len() != arguments.pods {
        bail!("{} of {} pods are there", reader.len(), arguments.pods);
    }
    let control = Control {
        client,
        listener: &listener,
        arguments,
    };
    control.settle(&mut outcome).await;
    if matches!(arguments.form, Form::Typed | Form::Decoded) {
        reads(&reader, arguments, &mut outcome)?;
    }
    if arguments.events > 0 {
        let (rate, p50, p99) = control.events().await?;
        outcome.events_per_second = rate;
        outcome.latency_p50_seconds = p50.as_secs_f64();
        outcome.latency_p99_seconds = p99.as_secs_f64();
        attitude.store(DECODES, Ordering::Relaxed);
        let (rate, p50, _) = control.events().await?;
        outcome.decoded_events_per_second = rate;
        outcome.decoded_latency_p50_seconds = p50.as_secs_f64();
    }
    control.relist(&mut outcome).await?;
    running.abort();
    Ok(outcome)
}

fn handler<K: Kind>(
    listener: Arc<Listener>,
    attitude: Arc<AtomicU8>,
) -> impl FnMut(Event<K>) + Send + 'static {
    move |event| {
        let Event::Updated { new, .. } = &event else {
            return;
        };
        if attitude.load(Ordering::Relaxed) == DECODES {
            black_box(new.value());
        }
        listener.heard(new.annotation(STAMP).as_deref());
    }
}

fn reads<K: Kind>(reader: &Reader<K>, arguments: &Arguments, outcome: &mut Outcome) -> Result<()> {
    let pods = arguments.pods;
    let keys: Vec<Key> = (0..pods)
        .map(|turn| turn * STRIDE % pods)
        .map(|n| {
            Key::new(
                &format!("namespace-{:02}", n % NAMESPACES),
                &format!("pod-{n:07}"),
            )
        })
        .collect();
    let is_there = |key: &Key| reader.contains(key);
    if let Some(missing) = keys.iter().find(|key| !is_there(key)) {
        bail!("{missing} is not there");
    }
    outcome.gets_per_second = match arguments.form {
        Form::Decoded => per_second(|turn| drop(black_box(reader.get(&keys[turn % pods])))),
        _ => per_second(|turn| drop(black_box(reader.entry(&keys[turn % pods])))),
    };
    outcome.copies_per_second = per_second(|turn| drop(black_box(reader.get(&keys[turn % pods]))));
    let instances: Vec<String> = (0..(pods / POSTINGS).max(1))
        .map(|n| format!("instance-{n:04}"))
        .collect();
    let namespaces: Vec<String> = (0..NAMESPACES)
        .map(|n| format!("namespace-{n:02}"))
        .collect();
    let found = |index: &str, value: &str| reader.entries_by_index(index, value);
    if found("instance", &instances[0])?.is_empty()
        || found(NAMESPACE_INDEX, &namespaces[0])?.is_empty()
    {
        bail!("an index is empty");
    }
    outcome.new_few_per_second = once_each(&instances[1..], |value| {
        drop(black_box(found("instance", value)));
    });
    outcome.few_per_second = per_second(|turn| {
        let value = &instances[turn * STRIDE % instances.len()];
        drop(black_box(found("instance", value)));
    });
    outcome.many_per_second = per_second(|turn| {
        let value = &namespaces[turn % NAMESPACES];
        drop(black_box(found(NAMESPACE_INDEX, value)));
    });
    Ok(())
}

/// Does something once with each value, and tells how often in a second. It is over too soon for processor time, which
/// is counted in ticks.
fn once_each(values: &[String], read: impl Fn(&str)) -> f64 {
    let stopwatch = Stopwatch::start();
    values.iter().for_each(|value| read(value));
    let spent = stopwatch.elapsed().max(Duration::from_nanos(1));
    values.len() as f64 / spent.as_secs_f64()
}

/// Repeats something until the time is over, and tells how often in a second of this thread's processor time: what others
/// take of the machine does not count. The clock is looked at once in 64 turns.
fn per_second(read: impl Fn(usize)) -> f64 {
    let stopwatch = Stopwatch::start();
    let before = machine::processor_time();
    let mut turn = 0;
    loop {
        for _ in 0..64 {
            read(turn);
            turn += 1;
        }
        if stopwatch.elapsed() >= READ_FOR {
            let spent = machine::processor_time().saturating_sub(before);
            return turn as f64 / spent.as_secs_f64();
        }
    }
}
