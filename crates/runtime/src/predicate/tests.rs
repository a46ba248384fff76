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
        (Predicate::generation_changed(), [false, false, true, false]),
        (
            Predicate::resource_version_changed(),
            [false, true, true, true],
        ),
        (Predicate::labels_changed(), [false, false, false, true]),
        (
            Predicate::annotations_changed(),
            [false, false, false, true],
        ),
    ];
    for (at, (predicate, expected)) in cases.into_iter().enumerate() {
        let events = [resync(), status(), specification(), metadata()];
        let held = events.map(|event| predicate.holds(&event));
        assert_eq!(held, expected, "case {at}");
        assert!(predicate.holds(&added(pod(1, 1, "a"))));
        assert!(predicate.holds(&deleted(pod(1, 1, "a"))));
    }
}

#[test]
fn selector_looks_at_the_newest_state() {
    let selected = Predicate::label_selector("app in (a,b)").expect("is a selector");
    assert!(selected.holds(&added(pod(1, 1, "a"))));
    assert!(!selected.holds(&added(pod(1, 1, "c"))));
    assert!(selected.holds(&updated(pod(1, 1, "c"), pod(2, 1, "a"))));
    assert!(!selected.holds(&updated(pod(1, 1, "a"), pod(2, 1, "c"))));
    assert!(Predicate::<Pod>::label_selector("app in a").is_err());
    let pairs = Predicate::label_selector([("app", "a")]).expect("is a selector");
    assert!(pairs.holds(&added(pod(1, 1, "a"))));
    assert!(!pairs.holds(&added(pod(1, 1, "c"))));
}

#[test]
fn functions_see_events_objects_and_values() {
    let event = added(pod(1, 1, "n1"));
    let on_n1 = Predicate::value(|pod: &Pod| {
        let spec = pod.spec.as_ref();
        spec.and_then(|spec| spec.node_name.as_deref()) == Some("n1")
    });
    assert!(on_n1.holds(&event));
    assert!(!on_n1.holds(&added(pod(1, 1, "n2"))));
    assert!(Predicate::object(|pod| pod.label("app").is_some()).holds(&event));
    assert!(Predicate::new(|event: &Event<Pod>| !event.is_resync()).holds(&event));
}

#[test]
fn predicates_are_joined() {
    let says = |answer| Predicate::new(move |_: &Event<Pod>| answer);
    let event = added(pod(1, 1, "a"));
    for (a, b) in [(true, true), (true, false), (false, true), (false, false)] {
        assert_eq!(says(a).and(says(b)).holds(&event), a && b);
        assert_eq!(says(a).or(says(b)).holds(&event), a || b);
        assert_eq!((!says(a)).holds(&event), !a);
    }
}

#[test]
fn changes_are_narrowed_by_their_sort() {
    let all = || {
        let (a, b) = (pod(1, 1, "a"), pod(2, 1, "a"));
        [added(a.clone()), updated(a.clone(), b), deleted(a)]
    };
    let check = |predicate: Predicate<Pod>, expected: [bool; 3]| {
        assert_eq!(all().map(|event| predicate.holds(&event)), expected);
    };
    check(Predicate::any(), [true, true, true]);
    check(Predicate::any().created(|_| false), [false, true, true]);
    check(Predicate::any().updated(|_, _| false), [true, false, true]);
    check(Predicate::any().deleted(|_| false), [true, true, false]);
}
