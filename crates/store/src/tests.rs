//! Tests of the storage as a whole.

mod crowd;
mod model;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::*;
use crate::environment::{Clock, Environment};

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
pub(super) struct Hand(Arc<Mutex<i64>>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(*self.0.lock()).expect("tests stay in range")
    }
}

impl Hand {
    pub(super) fn advance(&self, seconds: i64) {
        *self.0.lock() += seconds;
    }
}

pub(super) fn store(limits: HistoryLimits) -> (Store, Hand) {
    let hand = Hand::default();
    let environment = Environment::seeded(hand.clone(), 7);
    (Store::new(environment, limits), hand)
}

pub(super) fn draft(uid: &str, app: &str, value: &str) -> Draft {
    let head = r#"{"metadata":{"resourceVersion":""#;
    Draft {
        uid: uid.into(),
        labels: [("app", app)].into_iter().collect(),
        fields: Pairs::default(),
        body: format!(r#"{head}","labels":{{"app":"{app}"}}}},"value":"{value}"}}"#).into_bytes(),
        version_at: head.len(),
    }
}

pub(super) fn create(key: &str, value: &str) -> Write {
    let key = key.to_owned();
    let draft = draft("u", "x", value);
    Write::Create { key, draft }
}

pub(super) fn update(key: &str, expected_revision: u64, value: &str) -> Write {
    Write::Update {
        key: key.to_owned(),
        expected_revision,
        draft: draft("u", "x", value),
    }
}

pub(super) fn delete(key: &str, expected_revision: u64) -> Write {
    let key = key.to_owned();
    Write::Delete {
        key,
        expected_revision,
    }
}

/// What a cursor has to say right now.
pub(super) fn poll(cursor: &mut Cursor, max: usize) -> Result<Vec<Arc<Event>>, Expired> {
    let mut out = Vec::new();
    match cursor.poll_next_batch(&mut Context::from_waker(Waker::noop()), &mut out, max) {
        Poll::Ready(Err(expired)) => Err(expired),
        Poll::Ready(Ok(())) | Poll::Pending => Ok(out),
    }
}

fn revisions(events: &[Arc<Event>]) -> Vec<u64> {
    events.iter().map(|e| e.revision()).collect()
}

fn keys(snapshot: &Snapshot, prefix: &str, after: Option<&str>) -> Vec<String> {
    let range = snapshot.range(prefix, after);
    range.map(|r| r.key().to_owned()).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("bodies are text")
}

#[test]
fn each_write_takes_the_next_revision_and_shows_it_in_the_body() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    let made = pods.commit(create("ns/a", "1")).unwrap().record;
    assert_eq!((made.revision(), made.create_revision()), (2, 2));
    assert_eq!(
        text(made.body()),
        r#"{"metadata":{"resourceVersion":"2","labels":{"app":"x"}},"value":"1"}"#
    );
    for expected in 2..12 {
        let value = format!("v{expected}");
        let done = pods.commit(update("ns/a", expected, &value)).unwrap();
        let digits = format!(r#""resourceVersion":"{}","#, expected + 1);
        assert!(text(done.record.body()).contains(&digits));
        assert_eq!(done.record.create_revision(), 2);
    }
    assert_eq!((made.namespace(), made.name()), (Some("ns"), "a"));
    assert_eq!(store.revision(), 12);
}

#[test]
fn writes_that_do_not_fit_are_refused_and_change_nothing() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    pods.commit(create("a", "1")).unwrap();
    let mut misplaced = draft("u", "x", "1");
    misplaced.version_at = 0;
    let cases = [
        (create("a", "2"), "the object exists"),
        (
            update("a", 1, "2"),
            "the object is at another revision than the writer has seen",
        ),
        (
            delete("a", 3),
            "the object is at another revision than the writer has seen",
        ),
        (update("b", 2, "2"), "the object does not exist"),
        (delete("b", 2), "the object does not exist"),
        (
            create("", "1"),
            "the write cannot be stored: the key is empty",
        ),
        (
            Write::Update {
                key: "a".into(),
                expected_revision: 2,
                draft: draft("other", "x", "2"),
            },
            "the write cannot be stored: an update cannot change the uid",
        ),
        (
            Write::Create {
                key: "c".into(),
                draft: misplaced,
            },
            "the write cannot be stored: the offset of the resourceVersion does not lie between two quotes",
        ),
    ];
    for (write, expect) in cases {
        assert_eq!(pods.commit(write).unwrap_err().to_string(), expect);
    }
    assert_eq!(store.revision(), 2);
}

#[test]
fn an_update_that_says_the_same_changes_nothing() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    pods.commit(create("a", "1")).unwrap();
    let done = pods.commit(update("a", 2, "1")).unwrap();
    assert!(matches!(done.effect, Effect::Unchanged));
    assert_eq!((done.record.revision(), store.revision()), (2, 2));
    assert!(poll(&mut pods.watch(2).unwrap(), 10).unwrap().is_empty());
}

#[test]
fn a_deletion_carries_the_last_state_at_its_own_revision() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    pods.commit(create("a", "1")).unwrap();
    let gone = pods.commit(delete("a", 2)).unwrap().record;
    assert_eq!((gone.revision(), gone.create_revision()), (3, 2));
    assert_eq!(
        text(gone.body()),
        r#"{"metadata":{"resourceVersion":"3","labels":{"app":"x"}},"value":"1"}"#
    );
    assert!(pods.get("a").is_none());
}

#[test]
fn selectors_see_objects_enter_and_leave() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    let relabel = |revision: u64, app: &str| Write::Update {
        key: "a".into(),
        expected_revision: revision,
        draft: draft("u", app, "1"),
    };
    pods.commit(create("a", "1")).unwrap();
    for (revision, app) in [(2, "y"), (3, "z"), (4, "x")] {
        pods.commit(relabel(revision, app)).unwrap();
    }
    pods.commit(delete("a", 5)).unwrap();
    let events = poll(&mut pods.watch(1).unwrap(), 10).unwrap();
    let seen: Vec<_> = events
        .iter()
        .filter_map(|e| {
            let delivery = e.delivery(|r| r.labels().get("app") == Some("x"))?;
            let frame = e.frame(delivery);
            assert_eq!(frame.as_ptr(), e.frame(delivery).as_ptr(), "rendered once");
            Some(text(&frame).to_owned())
        })
        .collect();
    let frame = |kind: &str, revision: u64| {
        format!(
            "{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{revision}\",\
             \"labels\":{{\"app\":\"x\"}}}},\"value\":\"1\"}}}}\n"
        )
    };
    let expect = [("ADDED", 2), ("DELETED", 3), ("ADDED", 5), ("DELETED", 6)];
    assert_eq!(seen, expect.map(|(kind, revision)| frame(kind, revision)));
    assert_eq!(text(&events[1].body(Delivery::Left)), {
        r#"{"metadata":{"resourceVersion":"3","labels":{"app":"x"}},"value":"1"}"#
    });
}

#[test]
fn a_range_is_in_byte_order_within_its_prefix_and_after_its_start() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    for key in ["b/1", "a/2", "a-b/1", "a/1", "a/10", "c"] {
        pods.commit(create(key, "1")).unwrap();
    }
    let now = pods.snapshot(At::Latest).unwrap();
    let check = |prefix: &str, after: Option<&str>, expect: &[&str]| {
        assert_eq!(keys(&now, prefix, after), expect, "{prefix} {after:?}");
        if after.is_none() {
            assert_eq!(now.count(prefix), expect.len(), "{prefix}");
        }
    };
    check("", None, &["a-b/1", "a/1", "a/10", "a/2", "b/1", "c"]);
    check("a/", None, &["a/1", "a/10", "a/2"]);
    check("a/", Some("a/1"), &["a/10", "a/2"]);
    check("a/", Some("a/11"), &["a/2"]);
    check("b/", Some("a/1"), &["b/1"]);
    check("a/", Some("b/1"), &[]);
    check("", Some("c"), &[]);
}

#[test]
fn old_revisions_read_as_they_were_and_forgotten_ones_say_so() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    pods.commit(create("a", "1")).unwrap();
    pods.commit(create("b", "1")).unwrap();
    pods.commit(update("a", 2, "2")).unwrap();
    pods.commit(delete("b", 3)).unwrap();
    let at = |revision| pods.snapshot(At::Revision(revision));
    for (revision, expect) in [
        (1, vec![]),
        (2, vec![2]),
        (3, vec![2, 3]),
        (4, vec![4, 3]),
        (5, vec![4]),
    ] {
        let snapshot = at(revision).unwrap();
        let got: Vec<_> = snapshot.range("", None).map(|r| r.revision()).collect();
        assert_eq!((got, snapshot.revision()), (expect, revision));
    }
    assert_eq!(at(6).unwrap_err(), SnapshotError::Future { current: 5 });
    assert_eq!(store.compact(6), Err(FutureRevision { current: 5 }));
    store.compact(4).unwrap();
    assert_eq!(at(3).unwrap_err(), SnapshotError::Expired { oldest: 4 });
    assert_eq!(pods.watch(3).unwrap_err(), Expired { oldest: 4 });
    assert_eq!(at(4).unwrap().len(), 2);
    assert_eq!(
        revisions(&poll(&mut pods.watch(4).unwrap(), 9).unwrap()),
        [5]
    );
}

#[test]
fn a_slow_cursor_expires_and_one_that_keeps_up_does_not() {
    let (store, _) = store(HistoryLimits::default().events(3));
    let (pods, quiet) = (store.collection("pods"), store.collection("quiet"));
    quiet.commit(create("q", "1")).unwrap();
    let mut idle = quiet.watch(2).unwrap();
    let (mut slow, mut quick) = (pods.watch(2).unwrap(), pods.watch(2).unwrap());
    for i in 0..10 {
        pods.commit(create(&format!("p{i}"), "1")).unwrap();
        assert_eq!(poll(&mut quick, 10).unwrap().len(), 1);
    }
    assert_eq!(poll(&mut slow, 10).unwrap_err(), Expired { oldest: 9 });
    assert!(poll(&mut idle, 10).unwrap().is_empty());
    assert!(quiet.watch(2).is_ok(), "nothing of it was forgotten");
    assert!(quiet.watch(1).is_err());
    store.compact(12).unwrap();
    assert!(quiet.watch(2).is_err(), "a compaction is for all");
    assert!(poll(&mut idle, 10).unwrap().is_empty());
    assert!(poll(&mut quick, 10).unwrap().is_empty());
}

#[test]
fn history_ends_by_bytes_and_by_age() {
    let limits = HistoryLimits::default()
        .bytes(4096)
        .age(Duration::from_secs(300));
    let (store, hand) = store(limits);
    let pods = store.collection("pods");
    let large = "x".repeat(3000);
    pods.commit(create("a", &large)).unwrap();
    pods.commit(update("a", 2, &large.replace('x', "y")))
        .unwrap();
    pods.commit(update("a", 3, &large)).unwrap();
    assert_eq!(pods.watch(2).unwrap_err(), Expired { oldest: 3 });
    assert!(pods.watch(3).is_ok());
    hand.advance(300);
    store.trim();
    assert!(pods.watch(3).is_ok());
    hand.advance(1);
    store.trim();
    let other = store.collection("other");
    assert_eq!(other.watch(3).unwrap_err(), Expired { oldest: 4 });
    assert!(pods.watch(4).is_ok());
}

#[test]
fn progress_is_the_present_when_nothing_is_pending() {
    let (store, _) = store(HistoryLimits::default());
    let (pods, other) = (store.collection("pods"), store.collection("other"));
    let mut cursor = pods.watch(1).unwrap();
    other.commit(create("o", "1")).unwrap();
    assert_eq!(cursor.progress(), 2);
    pods.commit(create("a", "1")).unwrap();
    pods.commit(create("b", "1")).unwrap();
    other.commit(create("p", "1")).unwrap();
    assert_eq!(cursor.progress(), 1);
    assert_eq!(revisions(&poll(&mut cursor, 1).unwrap()), [3]);
    assert_eq!(cursor.progress(), 3);
    assert_eq!(revisions(&poll(&mut cursor, 9).unwrap()), [4]);
    assert_eq!(cursor.progress(), 5);
}

#[test]
fn a_cursor_from_the_future_is_silent_until_then() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    let mut cursor = pods.watch(3).unwrap();
    for (key, expect) in [("a", vec![]), ("b", vec![]), ("c", vec![4])] {
        pods.commit(create(key, "1")).unwrap();
        assert_eq!(revisions(&poll(&mut cursor, 9).unwrap()), expect);
        assert!(cursor.progress() >= 3);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_revision_ends_with_it_or_with_the_time() {
    let (store, _) = store(HistoryLimits::default());
    let second = Duration::from_secs(1);
    assert_eq!(
        store.wait_for(2, second).await,
        Err(FutureRevision { current: 1 })
    );
    let pods = store.collection("pods");
    let (waited, _) = tokio::join!(store.wait_for(2, second), async {
        pods.commit(create("a", "1")).unwrap();
    });
    assert_eq!(waited, Ok(()));
}

#[test]
fn an_observer_hears_of_every_change_in_order_and_of_nothing_else() {
    let (store, _) = store(HistoryLimits::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let observer = move |name: &str, event: &Event| {
        let key = event.record().key().to_owned();
        log.lock().push((name.to_owned(), key, event.revision()));
    };
    store.observe(observer).expect("nobody observes");
    assert_eq!(store.observe(|_, _| {}), Err(Observed));
    let (pods, maps) = (store.collection("pods"), store.collection("configmaps"));
    pods.commit(create("a", "1")).expect("it is new");
    maps.commit(create("b", "1")).expect("it is new");
    assert!(maps.commit(create("b", "2")).is_err());
    let same = pods.commit(update("a", 2, "1")).expect("it is so");
    assert!(matches!(same.effect, Effect::Unchanged));
    pods.commit(update("a", 2, "2")).expect("it is there");
    let named = |name: &str, key: &str, revision| (name.to_owned(), key.to_owned(), revision);
    let expected = [
        named("pods", "a", 2),
        named("configmaps", "b", 3),
        named("pods", "a", 4),
    ];
    assert_eq!(*heard.lock(), expected);
}

#[tokio::test]
async fn a_write_whose_check_refuses_changes_nothing() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    let mut seen = Vec::new();
    let refused = pods.commit_durable_if(create("a", "1"), |event| {
        seen.push(event.revision());
        false
    });
    assert!(matches!(refused.await, Err(CommitError::Unmet)));
    assert_eq!((seen, store.revision()), (vec![2], 1));
    assert!(pods.get("a").is_none());
    let done = pods.commit_durable_if(create("a", "1"), |event| event.revision() == 2);
    done.await.expect("the check agrees");
    let unasked = pods.commit_durable_if(update("a", 2, "1"), |_| false);
    unasked.await.expect("nothing would change");
}

#[test]
fn a_fork_has_the_past_and_goes_its_own_way() {
    let (store, hand) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    pods.commit(create("a", "1")).unwrap();
    let fork = store.fork(Environment::seeded(hand, 8));
    let theirs = fork.collection("pods");
    let mut theirs_from_one = theirs.watch(1).unwrap();
    theirs.commit(delete("a", 2)).unwrap();
    assert_eq!(revisions(&poll(&mut theirs_from_one, 9).unwrap()), [2, 3]);
    pods.commit(update("a", 2, "2")).unwrap();
    assert!(theirs.get("a").is_none());
    assert_eq!(pods.get("a").unwrap().revision(), 3);
    assert_eq!(
        revisions(&poll(&mut pods.watch(2).unwrap(), 9).unwrap()),
        [3]
    );
}

#[test]
fn a_restored_store_has_the_objects_of_the_other_and_no_past() {
    let (store, hand) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    pods.commit(create("a", "1")).unwrap();
    let kept = store.fork(Environment::seeded(hand, 8));
    pods.commit(delete("a", 2)).unwrap();
    let nodes = store.collection("nodes");
    nodes.commit(create("n", "1")).unwrap();
    let mut up_to_date = pods.watch(4).unwrap();
    assert!(poll(&mut up_to_date, 9).unwrap().is_empty());
    store.restore(&kept).unwrap();
    assert_eq!(store.revision(), 5, "the revision never goes back");
    assert_eq!(pods.get("a").unwrap().revision(), 2, "as it was");
    assert!(nodes.get("n").is_none());
    assert_eq!(pods.watch(4).unwrap_err(), Expired { oldest: 5 });
    assert_eq!(poll(&mut up_to_date, 9).unwrap_err(), Expired { oldest: 5 });
    let mut later = pods.watch(5).unwrap();
    pods.commit(update("a", 2, "2")).unwrap();
    assert_eq!(revisions(&poll(&mut later, 9).unwrap()), [6]);
}

#[test]
fn a_record_is_small() {
    assert!(size_of::<Record>() <= 120, "{}", size_of::<Record>());
    assert!(size_of::<Event>() <= 96, "{}", size_of::<Event>());
}
