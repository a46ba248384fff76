//! The rules of client-go's reflector, each as a script of what came in and what is done.

use std::sync::Arc;
use std::time::Duration;

use super::machine::Machine;
use super::phase::{Input, Next, Step};
use super::*;
use crate::delta::Delta;
use crate::intake::WatchEvent;
use crate::object::Object;
use crate::source::{BoxFuture, Chunks, FailureKind, Initial, StreamingList};

fn options() -> Options {
    Options::default().with_random(|| 0.0)
}

fn object(name: &str, version: u32) -> Arc<Object> {
    let json = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#);
    Object::parse(json.as_bytes(), &Shape::default()).expect("it is an object")
}

fn page(names: &[&str], version: &str, token: &str) -> Input {
    Input::Page(Page {
        objects: names.iter().map(|name| object(name, 1)).collect(),
        resource_version: version.to_owned(),
        continue_token: token.to_owned(),
    })
}

fn added(name: &str, version: u32) -> Input {
    Input::Event(WatchEvent::Added(object(name, version)))
}

fn modified(name: &str, version: u32) -> Input {
    Input::Event(WatchEvent::Modified(object(name, version)))
}

fn deleted(name: &str, version: u32) -> Input {
    Input::Event(WatchEvent::Deleted(object(name, version)))
}

fn bookmark(version: &str, ends_initial: bool) -> Input {
    Input::Event(WatchEvent::Bookmark {
        resource_version: version.to_owned(),
        ends_initial,
    })
}

fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, "")
}

fn error(kind: FailureKind) -> Input {
    Input::Event(WatchEvent::Error(failure(kind)))
}

fn show(step: &Step, now: Duration) -> String {
    let mut parts = Vec::new();
    match &step.delta {
        Some(Delta::Replace {
            objects,
            resource_version,
        }) => {
            let names: Vec<_> = objects.iter().map(|o| o.key().to_string()).collect();
            parts.push(format!("replace {}@{resource_version}", names.join("+")));
        }
        Some(Delta::Apply(object)) => parts.push(format!("apply {object:?}")),
        Some(Delta::Delete(object)) => parts.push(format!("delete {object:?}")),
        Some(Delta::Bookmark(version)) => parts.push(format!("bookmark {version}")),
        None => {}
    }
    if let Some(failure) = &step.report {
        parts.push(format!("report {:?}", failure.kind));
    }
    parts.push(match &step.next {
        Next::List(r) if !r.continue_token.is_empty() => {
            format!(
                "list after={} rv={} limit={}",
                r.continue_token, r.resource_version, r.limit
            )
        }
        Next::List(r) => format!("list rv={} limit={}", r.resource_version, r.limit),
        Next::Watch(r) if r.initial == Initial::Events => {
            format!("stream rv={}", r.resource_version)
        }
        Next::Watch(r) => format!("watch rv={}", r.resource_version),
        Next::Read { .. } => "read".to_owned(),
        Next::Sleep { until } => format!("sleep {:.1}", (*until - now).as_secs_f64()),
    });
    parts.join(", ")
}

/// Runs a script. Time stands still but for `Elapsed`, which comes when the wait is over.
fn check(streaming: StreamingList, script: Vec<(Input, &str)>) {
    check_with(options(), streaming, script);
}

fn check_with(options: Options, streaming: StreamingList, script: Vec<(Input, &str)>) {
    let mut machine = Machine::new(options, streaming);
    let mut now = Duration::ZERO;
    let mut until = Duration::ZERO;
    for (line, (input, expected)) in script.into_iter().enumerate() {
        if let Input::Elapsed = input {
            now = until;
        }
        let shown = format!("{input:?}");
        let step = machine.step(now, input);
        if let Next::Sleep { until: then } | Next::Read { until: then } = &step.next {
            until = *then;
        }
        assert_eq!(show(&step, now), expected, "line {line}: {shown}");
    }
}

use FailureKind as Kind;
use StreamingList::{No, Try};

#[test]
fn stream_is_read_to_its_bookmark_and_goes_on_as_the_watch() {
    check(
        Try,
        vec![
            (Input::Start, "stream rv="),
            (Input::Opened, "read"),
            (added("b", 1), "read"),
            (added("a", 2), "read"),
            (modified("b", 3), "read"),
            (added("c", 4), "read"),
            (deleted("c", 5), "read"),
            (bookmark("5", false), "read"),
            (bookmark("6", true), "replace a+b@6, read"),
            (modified("a", 7), "apply a@7, read"),
            (deleted("a", 8), "delete a@8, read"),
            (bookmark("9", false), "bookmark 9, read"),
            (Input::Ended(None), "watch rv=9"),
        ],
    );
}

#[test]
fn list_comes_first_where_streams_are_not_known() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&["a", "b"], "7", ""), "replace a+b@7, watch rv=7"),
            (Input::Opened, "read"),
            (added("c", 8), "apply c@8, read"),
        ],
    );
}

#[test]
fn refused_stream_falls_back_to_a_list() {
    for kind in [
        Kind::Invalid,
        Kind::Forbidden,
        Kind::Internal,
        Kind::Other,
        Kind::NotFound,
    ] {
        check(
            Try,
            vec![
                (Input::Start, "stream rv="),
                (Input::Refused(failure(kind)), "list rv=0 limit=500"),
                (page(&["a"], "7", ""), "replace a@7, watch rv=7"),
            ],
        );
    }
}

#[test]
fn stream_waits_and_tries_again_when_the_server_is_busy_or_away() {
    for kind in [Kind::TooManyRequests, Kind::ConnectionRefused] {
        let report = format!("report {kind:?}, sleep 0.8");
        check(
            Try,
            vec![
                (Input::Start, "stream rv="),
                (Input::Refused(failure(kind)), &report),
                (Input::Elapsed, "stream rv="),
            ],
        );
    }
}

#[test]
fn stream_that_ends_early_starts_from_nothing() {
    check(
        Try,
        vec![
            (Input::Start, "stream rv="),
            (Input::Opened, "read"),
            (added("a", 1), "read"),
            (Input::Ended(None), "sleep 0.8"),
            (Input::Elapsed, "stream rv="),
            (Input::Opened, "read"),
            (added("b", 1), "read"),
            (bookmark("2", true), "replace b@2, read"),
        ],
    );
}

#[test]
fn stream_at_an_expired_version_asks_for_the_newest() {
    check(
        Try,
        vec![
            (Input::Start, "stream rv="),
            (Input::Opened, "read"),
            (bookmark("5", true), "replace @5, read"),
            (error(Kind::Expired), "sleep 0.8"),
            (Input::Elapsed, "stream rv=5"),
            (error(Kind::Expired), "stream rv="),
            (error(Kind::Expired), "list rv= limit=500"),
        ],
    );
}

#[test]
fn stream_that_never_says_its_end_is_given_up() {
    check(
        Try,
        vec![
            (Input::Start, "stream rv="),
            (Input::Opened, "read"),
            (added("a", 1), "read"),
            (Input::Elapsed, "report Silence, list rv=0 limit=500"),
            (page(&["a"], "7", ""), "replace a@7, watch rv=7"),
            (
                Input::Refused(failure(Kind::Other)),
                "report Other, sleep 0.8",
            ),
            (Input::Elapsed, "list rv=7 limit=0"),
        ],
    );
}

#[test]
fn pages_are_followed_and_the_first_one_gives_the_version() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&["a"], "7", "t1"), "list after=t1 rv= limit=500"),
            (page(&["b"], "8", "t2"), "list after=t2 rv= limit=500"),
            (page(&["c"], "9", ""), "replace a+b+c@7, watch rv=7"),
        ],
    );
}

#[test]
fn relist_at_a_version_is_not_paged_unless_the_server_pages_anyway() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&["a"], "7", ""), "replace a@7, watch rv=7"),
            (
                Input::Refused(failure(Kind::Other)),
                "report Other, sleep 0.8",
            ),
            (Input::Elapsed, "list rv=7 limit=0"),
        ],
    );
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&["a"], "7", "t"), "list after=t rv= limit=500"),
            (page(&["b"], "7", ""), "replace a+b@7, watch rv=7"),
            (
                Input::Refused(failure(Kind::Other)),
                "report Other, sleep 0.8",
            ),
            (Input::Elapsed, "list rv=7 limit=500"),
        ],
    );
}

#[test]
fn pages_that_expire_are_replaced_by_one_list() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&["a"], "7", "t"), "list after=t rv= limit=500"),
            (
                Input::ListFailed(failure(Kind::Expired)),
                "list rv=0 limit=0",
            ),
            (page(&["a", "b"], "9", ""), "replace a+b@9, watch rv=9"),
        ],
    );
}

#[test]
fn list_at_a_version_the_server_cannot_use_is_repeated_without_one() {
    for kind in [Kind::Expired, Kind::VersionTooLarge] {
        let report = format!("report {kind:?}, sleep 1.6");
        let report = if kind == Kind::Expired {
            "sleep 1.6"
        } else {
            &report
        };
        check(
            No,
            vec![
                (Input::Start, "list rv=0 limit=500"),
                (page(&["a"], "7", ""), "replace a@7, watch rv=7"),
                (Input::Opened, "read"),
                (error(Kind::Expired), "sleep 0.8"),
                (Input::Elapsed, "list rv=7 limit=0"),
                (Input::ListFailed(failure(kind)), "list rv= limit=500"),
                (Input::ListFailed(failure(kind)), report),
                (Input::Elapsed, "list rv= limit=500"),
                (page(&["a"], "9", ""), "replace a@9, watch rv=9"),
                (
                    Input::Refused(failure(Kind::Other)),
                    "report Other, sleep 3.2",
                ),
                (Input::Elapsed, "list rv=9 limit=0"),
            ],
        );
    }
}

/// Lists that fail are retried ever more slowly: kube-rs asks about once a second for ever.
#[test]
fn backoff_grows_while_lists_fail() {
    let mut script = vec![(Input::Start, "list rv=0 limit=500")];
    for expected in ["0.8", "1.6", "3.2", "6.4", "12.8", "25.6", "30.0", "30.0"] {
        let sleep: &str = Box::leak(format!("report Forbidden, sleep {expected}").into_boxed_str());
        script.push((Input::ListFailed(failure(Kind::Forbidden)), sleep));
        script.push((Input::Elapsed, "list rv=0 limit=500"));
    }
    check(No, script);
}

#[test]
fn busy_silent_or_absent_server_is_asked_for_the_watch_again_without_a_list() {
    for kind in [
        Kind::TooManyRequests,
        Kind::ConnectionRefused,
        Kind::Silence,
    ] {
        let first = format!("report {kind:?}, sleep 0.8");
        let second = format!("report {kind:?}, sleep 1.6");
        check(
            No,
            vec![
                (Input::Start, "list rv=0 limit=500"),
                (page(&[], "7", ""), "replace @7, watch rv=7"),
                (Input::Refused(failure(kind)), &first),
                (Input::Elapsed, "watch rv=7"),
                (Input::Opened, "read"),
                (error(kind), &second),
                (Input::Elapsed, "watch rv=7"),
            ],
        );
    }
}

#[test]
fn internal_errors_are_followed_by_a_list_unless_they_are_to_be_endured() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (error(Kind::Internal), "report Internal, sleep 0.8"),
            (Input::Elapsed, "list rv=7 limit=0"),
        ],
    );
    check_with(
        options().retry_internal_errors(Duration::from_secs(2)),
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (error(Kind::Internal), "report Internal, sleep 0.8"),
            (Input::Elapsed, "watch rv=7"),
            (
                Input::Refused(failure(Kind::Internal)),
                "report Internal, sleep 1.6",
            ),
            (Input::Elapsed, "watch rv=7"),
            (Input::Opened, "read"),
            (error(Kind::Internal), "report Internal, sleep 3.2"),
            (Input::Elapsed, "list rv=7 limit=0"),
        ],
    );
}

#[test]
fn retry_after_is_obeyed_where_it_is_longer() {
    let busy = Failure {
        retry_after: Some(Duration::from_secs(17)),
        ..failure(Kind::TooManyRequests)
    };
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (
                Input::ListFailed(busy),
                "report TooManyRequests, sleep 17.0",
            ),
        ],
    );
}

#[test]
fn expired_watch_is_followed_by_a_list_whether_it_is_reported_by_code_or_by_event() {
    for input in [Input::Refused(failure(Kind::Expired)), error(Kind::Expired)] {
        let mut script = vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&["a"], "7", ""), "replace a@7, watch rv=7"),
        ];
        if let Input::Event(_) = input {
            script.push((Input::Opened, "read"));
        }
        script.push((input, "sleep 0.8"));
        script.push((Input::Elapsed, "list rv=7 limit=0"));
        check(No, script);
    }
}

/// A watch that ends at once is a failure: kube-rs opens hundreds a second.
#[test]
fn very_short_watches_back_off_and_relist() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (Input::Ended(None), "report ShortWatch, sleep 0.8"),
            (Input::Elapsed, "list rv=7 limit=0"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (bookmark("7", false), "bookmark 7, read"),
            (Input::Ended(None), "report ShortWatch, sleep 1.6"),
        ],
    );
}

/// Nothing has failed, so nothing is reported and nobody waits.
#[test]
fn changed_selection_reads_the_whole_state_again_at_once() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&["a"], "7", ""), "replace a@7, watch rv=7"),
            (Input::Opened, "read"),
            (Input::Reselected, "list rv=7 limit=0"),
            (page(&["b"], "7", ""), "replace b@7, watch rv=7"),
        ],
    );
}

#[test]
fn backoff_and_page_size_can_be_chosen() {
    let seconds = Duration::from_secs;
    let chosen = Backoff::new(seconds(2), seconds(5)).reset_after(seconds(10));
    check_with(
        options().backoff(chosen).page_size(4),
        No,
        vec![
            (Input::Start, "list rv=0 limit=4"),
            (page(&["a"], "7", "t"), "list after=t rv= limit=4"),
            (
                Input::ListFailed(failure(Kind::Other)),
                "report Other, sleep 2.0",
            ),
            (Input::Elapsed, "list rv=0 limit=4"),
            (
                Input::ListFailed(failure(Kind::Other)),
                "report Other, sleep 4.0",
            ),
            (Input::Elapsed, "list rv=0 limit=4"),
            (
                Input::ListFailed(failure(Kind::Other)),
                "report Other, sleep 5.0",
            ),
        ],
    );
}

#[test]
fn watch_is_asked_to_last_between_once_and_twice_the_shortest_time() {
    for (random, expected) in [(0.0, 600), (0.5, 900), (1.0, 1200), (7.0, 1200)] {
        let options = Options::default()
            .shortest_watch(Duration::from_secs(600))
            .with_random(move || random);
        let mut machine = Machine::new(options, Try);
        let step = machine.step(Duration::ZERO, Input::Start);
        let Next::Watch(request) = step.next else {
            panic!("{:?}", step.next);
        };
        assert_eq!(request.timeout, Duration::from_secs(expected));
    }
}

/// Bytes that are there.
struct Body(Option<bytes::Bytes>);

impl Chunks for Body {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<bytes::Bytes, Failure>>> {
        Box::pin(async { self.0.take().map(Ok) })
    }
}

#[limited::test]
async fn table_is_no_list() {
    let intake = Intake::new(Shape::default(), Reporter::default());
    let table = br#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"rows":[]}"#;
    let body = Body(Some(bytes::Bytes::from_static(table)));
    let failure = read_page(Box::new(body), &intake, SILENCE)
        .await
        .expect_err("a table cannot be cached");
    assert_eq!(failure.kind, Kind::Malformed);
}

#[test]
fn watch_that_said_something_is_opened_again_at_once() {
    let broken = Input::Ended(Some(failure(Kind::Interrupted)));
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (added("a", 8), "apply a@8, read"),
            (broken, "watch rv=8"),
        ],
    );
}

#[test]
fn watch_that_is_silent_beyond_its_time_is_opened_again() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (Input::Elapsed, "watch rv=7"),
        ],
    );
}

#[test]
fn line_that_is_no_event_ends_in_a_list() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (
                Input::Ended(Some(failure(Kind::Malformed))),
                "report Malformed, sleep 0.8",
            ),
            (Input::Elapsed, "list rv=7 limit=0"),
        ],
    );
}

#[test]
fn object_that_is_skipped_changes_nothing() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "7", ""), "replace @7, watch rv=7"),
            (Input::Opened, "read"),
            (Input::Event(WatchEvent::Skipped), "read"),
            (added("a", 9), "apply a@9, read"),
        ],
    );
}

#[test]
fn initial_events_without_an_order_do_not_move_the_version() {
    check(
        No,
        vec![
            (Input::Start, "list rv=0 limit=500"),
            (page(&[], "", ""), "replace @, watch rv="),
            (Input::Opened, "read"),
            (added("a", 9), "apply a@9, read"),
            (added("b", 3), "apply b@3, read"),
            (Input::Ended(None), "watch rv="),
            (Input::Opened, "read"),
            (modified("b", 11), "apply b@11, read"),
            (added("c", 12), "apply c@12, read"),
            (Input::Ended(None), "watch rv=12"),
        ],
    );
}
