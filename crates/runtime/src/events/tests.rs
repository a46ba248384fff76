//! Facts about events: the correlator by itself, then recorder and writer against the server.

use kubewright_testing::limit;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent};
use k8s_openapi::api::events::v1::Event as SeriesEvent;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kubewright_server::Server;
use tokio_util::sync::CancellationToken;

use super::correlator::{Correlator, Record, Write};
use super::*;
use crate::environment::VirtualClock;

fn reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        namespace: Some("default".into()),
        name: Some(name.into()),
        uid: Some("u1".into()),
        ..ObjectReference::default()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).expect("in range")
}

fn occurrence(second: i64, object: &str, message: &str) -> Occurrence {
    Occurrence {
        reference: reference(object),
        kind: EventKind::Normal,
        reason: "Synced".into(),
        message: message.into(),
        component: None,
        host: None,
        action: None,
        related: None,
        at: at(second),
    }
}

fn observe(correlator: &mut Correlator, second: i64, object: &str, message: &str) -> Write {
    correlator.observe(at(second), occurrence(second, object, message))
}

fn created(write: Write) -> Record {
    match write {
        Write::Create(record) => record,
        other => panic!("{other:?} creates nothing"),
    }
}

fn patched(write: Write) -> Record {
    match write {
        Write::Patch(record) => record,
        other => panic!("{other:?} patches nothing"),
    }
}

#[test]
fn same_event_counts_on_the_first() {
    let mut correlator = Correlator::default();
    let first = created(observe(&mut correlator, 0, "a", "fine"));
    assert_eq!((first.count, first.namespace.as_str()), (1, "default"));
    assert!(first.name.starts_with("a."));
    let mut last = None;
    for n in 1..7 {
        last = Some(patched(observe(&mut correlator, n * 160, "a", "fine")));
    }
    let last = last.expect("there were six");
    assert_eq!((last.count, &last.name), (7, &first.name));
    assert_eq!((last.first, last.last), (at(0), at(960)));
    created(observe(&mut correlator, 960, "b", "fine"));
}

#[test]
fn events_at_one_moment_have_different_names() {
    let mut correlator = Correlator::default();
    let names = ["x", "y", "z"].map(|m| created(observe(&mut correlator, 0, "a", m)).name);
    assert_ne!(names[0], names[1]);
    assert_ne!(names[1], names[2]);
}

#[test]
fn two_sources_name_their_events_differently() {
    let name = |component: &str| {
        let mut correlator = Correlator::of(component, component);
        match correlator.observe(at(0), occurrence(0, "a", "fine")) {
            Write::Create(record) => record.name,
            other => panic!("{other:?}"),
        }
    };
    assert_ne!(name("scheduler"), name("kubelet"));
    assert_eq!(name("kubelet"), name("kubelet"));
}

#[test]
fn tenth_similar_event_and_those_after_it_are_combined() {
    let mut correlator = Correlator::default();
    for n in 1..10 {
        created(observe(&mut correlator, n, "a", &n.to_string()));
    }
    let combined = created(observe(&mut correlator, 10, "a", "10"));
    let message = |record: &Record| record.occurrence.message.clone();
    assert_eq!(message(&combined), "(combined from similar events): 10");
    let again = patched(observe(&mut correlator, 11, "a", "11"));
    assert_eq!((again.count, &again.name), (2, &combined.name));
    assert_eq!(message(&again), "(combined from similar events): 11");
    // Ten quiet minutes later messages stand for themselves again.
    let alone = created(observe(&mut correlator, 11 + 601, "a", "12"));
    assert_eq!(message(&alone), "12");
}

#[test]
fn flood_is_cut_and_still_counted() {
    let mut correlator = Correlator::default();
    let mut written = 0;
    for _ in 0..40 {
        written += u32::from(observe(&mut correlator, 0, "a", "fine") != Write::Skip);
    }
    assert_eq!(written, 25);
    assert_eq!(observe(&mut correlator, 299, "a", "fine"), Write::Skip);
    let later = patched(observe(&mut correlator, 300, "a", "fine"));
    assert_eq!(later.count, 42);
    assert_eq!(observe(&mut correlator, 301, "a", "fine"), Write::Skip);
    created(observe(
        &mut correlator,
        301,
        "b",
        "other objects are not touched",
    ));
}

#[test]
fn objects_with_names_that_no_event_may_have_get_events_too() {
    let mut correlator = Correlator::default();
    for object in ["system:node", "", "-a", "a..b", &"a".repeat(250)] {
        let name = created(observe(&mut correlator, 0, object, "m")).name;
        assert!(name.starts_with("event.") && name.len() < 253, "{name}");
    }
}

#[test]
fn texts_are_cut_between_characters() {
    assert_eq!(cut("short", 10), "short");
    assert_eq!(cut("aé", 2), "a");
    assert_eq!(cut("abc", 2), "ab");
}

struct Scene {
    _server: Server,
    client: Client,
    recorder: Recorder,
    cancel: CancellationToken,
    writer: tokio::task::JoinHandle<()>,
}

impl Scene {
    async fn start(api: EventApi) -> Self {
        let server = Server::builder().start().await.expect("starts");
        let client = Client::new(server.service(), "default");
        let options = RecorderOptions::new("test-controller")
            .instance("pod-0")
            .api(api);
        let environment = Environment::seeded(VirtualClock::starting_at(at(0)), 1);
        let (recorder, writer) = Recorder::new(client.clone(), options, environment);
        let cancel = CancellationToken::new();
        let writer = tokio::spawn(writer.run(cancel.clone()));
        Self {
            _server: server,
            client,
            recorder,
            cancel,
            writer,
        }
    }

    /// Waits until everything that was recorded is written.
    async fn finish(self) -> Client {
        self.cancel.cancel();
        limit(self.writer).await.expect("it ends");
        assert_eq!(self.recorder.dropped(), 0);
        self.client
    }
}

#[limited::test(start_paused = true)]
async fn describe_shows_how_often_and_over_what_time() {
    let scene = Scene::start(EventApi::Core).await;
    for _ in 0..7 {
        scene
            .recorder
            .event(&reference("a"), EventKind::Warning, "Failed", "no luck");
        tokio::time::sleep(Duration::from_secs(160)).await;
    }
    let api: Api<CoreEvent> = Api::default_namespaced(limit(scene.finish()).await);
    let events = api
        .list(&ListParams::default())
        .await
        .expect("listed")
        .items;
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(event.count, Some(7));
    let [first, last] = [&event.first_timestamp, &event.last_timestamp].map(|time| {
        let time = time.as_ref().expect("it has one");
        time.0
    });
    assert_eq!(last.duration_since(first), SignedDuration::from_mins(16));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.message.as_deref(), Some("no luck"));
    assert_eq!(event.involved_object.name.as_deref(), Some("a"));
    let component = event
        .source
        .as_ref()
        .and_then(|source| source.component.as_deref());
    assert_eq!(component, Some("test-controller"));
}

#[limited::test(start_paused = true)]
async fn agents_name_their_machine() {
    let scene = Scene::start(EventApi::Core).await;
    let agent = scene.recorder.with_host("node-1");
    agent.event(&reference("a"), EventKind::Normal, "Started", "it runs");
    drop(agent);
    let api: Api<CoreEvent> = Api::default_namespaced(limit(scene.finish()).await);
    let events = api.list(&ListParams::default()).await.expect("listed");
    let event = &events.items[0];
    let source = event.source.as_ref().expect("it has one");
    assert_eq!(source.component.as_deref(), Some("test-controller"));
    assert_eq!(source.host.as_deref(), Some("node-1"));
    assert_eq!(event.reporting_instance.as_deref(), Some("node-1"));
}

#[limited::test(start_paused = true)]
async fn series_are_kept_in_the_events_api() {
    let scene = Scene::start(EventApi::Events).await;
    for _ in 0..3 {
        scene
            .recorder
            .event(&reference("a"), EventKind::Normal, "Synced", "fine");
    }
    let api: Api<SeriesEvent> = Api::default_namespaced(limit(scene.finish()).await);
    let events = api
        .list(&ListParams::default())
        .await
        .expect("listed")
        .items;
    assert_eq!(events.len(), 1);
    assert_eq!(
        events[0].series.as_ref().map(|series| series.count),
        Some(3)
    );
    assert_eq!(events[0].note.as_deref(), Some("fine"));
    assert_eq!(
        events[0].reporting_controller.as_deref(),
        Some("test-controller")
    );
}

#[limited::test(start_paused = true)]
async fn events_say_what_was_done_and_what_else_it_is_about() {
    for api in [EventApi::Core, EventApi::Events] {
        let scene = Scene::start(api).await;
        let telling = scene.recorder.with_action("Evicting");
        for name in ["pod-1", "pod-2"] {
            let telling = telling.with_related(&reference(name));
            telling.event(&reference("a"), EventKind::Warning, "Blocked", "a budget");
        }
        // Both APIs are views of the same objects.
        let api: Api<SeriesEvent> = Api::default_namespaced(limit(scene.finish()).await);
        let events = limit(api.list(&ListParams::default())).await;
        let mut seen: Vec<_> = events
            .expect("listed")
            .into_iter()
            .map(|event| (event.action, event.related.and_then(|it| it.name)))
            .collect();
        seen.sort();
        let expected = ["pod-1", "pod-2"].map(|pod| (Some("Evicting".into()), Some(pod.into())));
        assert_eq!(seen, expected, "another object makes another event");
    }
}

#[limited::test(start_paused = true)]
async fn event_that_expired_is_written_anew_with_its_count() {
    let scene = Scene::start(EventApi::Core).await;
    let api: Api<CoreEvent> = Api::default_namespaced(scene.client.clone());
    scene
        .recorder
        .event(&reference("a"), EventKind::Normal, "Synced", "fine");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let everything = ListParams::default();
    api.delete_collection(&DeleteParams::default(), &everything)
        .await
        .expect("deleted");
    scene
        .recorder
        .event(&reference("a"), EventKind::Normal, "Synced", "fine");
    limit(scene.finish()).await;
    let events = api.list(&everything).await.expect("listed").items;
    assert_eq!(
        events.iter().map(|event| event.count).collect::<Vec<_>>(),
        [Some(2)]
    );
}

#[limited::test(start_paused = true)]
async fn events_survive_an_outage_and_a_full_queue_drops() {
    let server = Server::builder().start().await.expect("starts");
    let up = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (service, is_up) = (server.service(), up.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (service, is_up) = (service.clone(), is_up.load(Ordering::Relaxed));
        async move {
            if is_up {
                tower::ServiceExt::oneshot(service, request)
                    .await
                    .map_err(|e| format!("{e:?}"))
            } else {
                Err("connection refused".to_owned())
            }
        }
    });
    let client = Client::new(service, "default");
    let options = RecorderOptions::new("test").queue(2);
    let environment = Environment::seeded(VirtualClock::starting_at(at(0)), 1);
    let (recorder, writer) = Recorder::new(client.clone(), options, environment);
    let task = tokio::spawn(writer.run(CancellationToken::new()));
    recorder.event(&reference("a"), EventKind::Normal, "One", "first");
    tokio::time::sleep(Duration::from_secs(30)).await;
    for _ in 0..5 {
        recorder.event(&reference("b"), EventKind::Normal, "Two", "more");
    }
    assert_eq!(recorder.dropped(), 3);
    up.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(15)).await;
    drop(recorder);
    limit(task).await.expect("it ends with its last recorder");
    let api: Api<CoreEvent> = Api::default_namespaced(client);
    let events = api
        .list(&ListParams::default())
        .await
        .expect("listed")
        .items;
    let mut counts: Vec<_> = events
        .iter()
        .map(|event| (event.reason.clone(), event.count))
        .collect();
    counts.sort();
    assert_eq!(
        counts,
        [(Some("One".into()), Some(1)), (Some("Two".into()), Some(2))]
    );
}

#[test]
fn reference_names_the_object() {
    let mut object = ConfigMap::default();
    object.metadata.name = Some("a".into());
    object.metadata.namespace = Some("default".into());
    object.metadata.uid = Some("u1".into());
    assert_eq!(reference_of(&object), reference("a"));
}

fn limited(options: RecorderOptions) -> Correlator {
    Correlator::default().with_limits(options.limits)
}

#[test]
fn limits_of_the_options_decide_what_is_combined_and_what_is_a_flood() {
    let options = RecorderOptions::new("c").aggregation(3, Duration::from_secs(60));
    let mut correlator = limited(options);
    let mut message = |second, message: &str| {
        let write = observe(&mut correlator, second, "a", message);
        created(write).occurrence.message
    };
    assert_eq!([message(0, "1"), message(1, "2")], ["1", "2"]);
    assert_eq!(message(2, "3"), "(combined from similar events): 3");
    assert_eq!(message(63, "4"), "4", "a quiet minute later");

    let options = RecorderOptions::new("c").flood_limit(2, Duration::from_secs(10));
    let mut correlator = limited(options);
    let mut is_written = |second| observe(&mut correlator, second, "a", "fine") != Write::Skip;
    let seen = [0, 0, 0, 10, 11].map(&mut is_written);
    assert_eq!(seen, [true, true, false, true, false]);

    let boundless = RecorderOptions::new("c").flood_limit(1, Duration::ZERO);
    let mut correlator = limited(boundless);
    let skipped = (0..100).find(|_| observe(&mut correlator, 0, "a", "fine") == Write::Skip);
    assert_eq!(skipped, None);
}

#[test]
fn components_of_one_recorder_have_limits_of_their_own() {
    let mut correlator = Correlator::default();
    let mut observe_by = |component: &str| {
        let occurrence = Occurrence {
            component: Some(component.into()),
            ..occurrence(0, "a", "fine")
        };
        correlator.observe(at(0), occurrence)
    };
    let first = created(observe_by("one"));
    for _ in 0..40 {
        observe_by("one");
    }
    let other = created(observe_by("two"));
    assert_ne!(first.name, other.name);
}
