//! Facts about predicates.

use k8s_openapi::api::core::v1::Pod;
use kubewright_cache::{Key, Object, Shape, store};
use serde_json::json;

use super::*;

/// A pod of this version and generation, whose label, annotation and node are `app`.
fn pod(version: u32, generation: u32, app: &str) -> Cached<Pod> {
    let json = json!({
        "metadata": {
            "name": "web", "resourceVersion": version.to_string(), "generation": generation,
            "labels": {"app": app}, "annotations": {"note": app},
        },
        "spec": {"containers": [], "nodeName": app},
    });
    let (mut writer, reader) = store::new::<Pod>();
    let object = Object::parse(json.to_string().as_bytes(), &Shape::default());
    writer.put(object.expect("it is an object"));
    reader.entry(&Key::cluster("web")).expect("it is there")
}

fn added(object: Cached<Pod>) -> Event<Pod> {
    let initial = false;
    Event::Added { object, initial }
}

fn updated(old: Cached<Pod>, new: Cached<Pod>) -> Event<Pod> {
    Event::Updated { old, new }
}

fn deleted(last: Cached<Pod>) -> Event<Pod> {
    let observed = true;
    Event::Deleted { last, observed }
}

#[test]
fn changes_are_seen_and_creations_and_deletions_pass() {
    let resync = || updated(pod(1, 1, "a"), pod(1, 1, "a"));
    let status = || updated(pod(1, 1, "a"), pod(2, 1, "a"));
    let specification = || updated(pod(1, 1, "a"), pod(2, 2, "a"));
    let metadata = || updated(pod(1, 1, "a"), pod(2, 1, "b"));
    let cases = [
        (generation_changed(), [false, false, true, false]),
        (resource_version_changed(), [false, true, true, true]),
        (labels_changed(), [false, false, false, true]),
        (annotations_changed(), [false, false, false, true]),
    ];
    for (predicate, expected) in cases {
        let events = [resync(), status(), specification(), metadata()];
        let admitted = events.map(|event| predicate.admits(&event));
        assert_eq!(admitted, expected, "{predicate:?}");
        assert!(predicate.admits(&added(pod(1, 1, "a"))));
        assert!(predicate.admits(&deleted(pod(1, 1, "a"))));
    }
}

#[test]
fn selector_looks_at_the_newest_state() {
    let selected = label_selector("app in (a,b)").expect("is a selector");
    assert!(selected.admits(&added(pod(1, 1, "a"))));
    assert!(!selected.admits(&added(pod(1, 1, "c"))));
    assert!(selected.admits(&updated(pod(1, 1, "c"), pod(2, 1, "a"))));
    assert!(!selected.admits(&updated(pod(1, 1, "a"), pod(2, 1, "c"))));
    assert!(label_selector("app in a").is_err());
}

#[test]
fn functions_see_events_objects_and_values() {
    let event = added(pod(1, 1, "n1"));
    fn on_n1(pod: &Pod) -> bool {
        let spec = pod.spec.as_ref();
        spec.and_then(|spec| spec.node_name.as_deref()) == Some("n1")
    }
    assert!(values(on_n1).admits(&event));
    assert!(values(on_n1).not().admits(&added(pod(1, 1, "n2"))));
    assert!(objects(|pod: &Cached<Pod>| pod.label("app").is_some()).admits(&event));
    assert!(events(|event: &Event<Pod>| !event.is_resync()).admits(&event));
    let plain = |event: &Event<Pod>| event.object().is_terminating();
    assert!(!plain.admits(&event));
}

#[test]
fn predicates_are_joined() {
    let [yes, no] = [true, false].map(|answer| move |_: &Event<Pod>| answer);
    let event = added(pod(1, 1, "a"));
    assert!(events(yes).and(yes).admits(&event));
    assert!(!events(yes).and(no).admits(&event));
    assert!(events(no).or(yes).admits(&event));
    assert!(!events(no).or(no).admits(&event));
    assert!(events(no).not().admits(&event));
    assert!(events(yes).and(no).not().and(yes).admits(&event));
}

#[test]
fn switches_choose_by_the_sort_of_event() {
    let all = || {
        let (a, b) = (pod(1, 1, "a"), pod(2, 1, "a"));
        [added(a.clone()), updated(a.clone(), b), deleted(a)]
    };
    let check = |switches: Switches<Pod>, expected: [bool; 3]| {
        assert_eq!(all().map(|event| switches.admits(&event)), expected);
    };
    check(switches(), [true, true, true]);
    check(switches().created(|_| false), [false, true, true]);
    check(switches().updated(|_, _| false), [true, false, true]);
    check(switches().deleted(|_| false), [true, true, false]);
}
