//! The exported text, whole for one queue and in part for special cases.

use crate::limit::limit;
use std::time::Duration;

use tokio::time::advance;

use super::*;
use crate::{Add, Options, Priority, PriorityPolicy, Queue};

fn text(stats: &[Stats]) -> String {
    let mut out = String::new();
    write(stats, &mut out).expect("a string takes everything");
    out
}

/// The lines of one series, without their comments.
fn lines<'a>(text: &'a str, series: &str) -> Vec<&'a str> {
    let prefix = format!("workqueue_{series}");
    let of_series = |line: &&str| line.starts_with(&prefix);
    text.lines().filter(of_series).collect()
}

#[limited::test(start_paused = true)]
async fn series_have_the_names_and_labels_that_dashboards_know() {
    let queue = Queue::new(Options::new().name("pods"));
    queue.add("a");
    queue.add_with("b", Add::now().priority(Priority::LOW));
    queue.add_after("c", Duration::from_secs(100));
    advance(Duration::from_millis(50)).await;
    let done = limit(queue.get()).await;
    advance(Duration::from_millis(200)).await;
    drop(done);
    queue.add("a");
    let running = limit(queue.get()).await;
    advance(Duration::from_millis(1500)).await;

    let text = text(&[queue.stats()]);
    let cases: [(&str, &[&str]); 9] = [
        (
            "depth",
            &[
                r#"workqueue_depth{name="pods",priority="0"} 0"#,
                r#"workqueue_depth{name="pods",priority="-100"} 1"#,
            ],
        ),
        ("adds_total", &[r#"workqueue_adds_total{name="pods"} 3"#]),
        (
            "retries_total",
            &[r#"workqueue_retries_total{name="pods"} 1"#],
        ),
        (
            "queue_duration_seconds_sum",
            &[r#"workqueue_queue_duration_seconds_sum{name="pods"} 0.05"#],
        ),
        (
            "work_duration_seconds_count",
            &[r#"workqueue_work_duration_seconds_count{name="pods"} 1"#],
        ),
        (
            "work_duration_seconds_sum",
            &[r#"workqueue_work_duration_seconds_sum{name="pods"} 0.2"#],
        ),
        (
            "unfinished_work_seconds",
            &[r#"workqueue_unfinished_work_seconds{name="pods"} 1.5"#],
        ),
        (
            "longest_running_processor_seconds",
            &[r#"workqueue_longest_running_processor_seconds{name="pods"} 1.5"#],
        ),
        (
            "work_duration_seconds_bucket",
            &[
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.00000001"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.0000001"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.000001"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.00001"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.0001"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.001"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.01"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="0.1"} 0"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="1"} 1"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="10"} 1"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="100"} 1"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="1000"} 1"#,
                r#"workqueue_work_duration_seconds_bucket{name="pods",le="+Inf"} 1"#,
            ],
        ),
    ];
    for (series, expected) in cases {
        assert_eq!(lines(&text, series), expected, "{series}");
    }
    drop(running);
}

#[limited::test(start_paused = true)]
async fn queue_that_ignores_priorities_has_no_such_label() {
    let options = Options::new()
        .name("a\"b\\c\nd")
        .priorities(PriorityPolicy::Ignore);
    let queue = Queue::new(options);
    queue.add("a");
    let text = text(&[queue.stats()]);
    let expected = [r#"workqueue_depth{name="a\"b\\c\nd"} 1"#];
    assert_eq!(lines(&text, "depth"), expected);
}

#[limited::test(start_paused = true)]
async fn too_many_priorities_share_a_series() {
    let queue = Queue::new(Options::new().name("q"));
    for priority in 0..30 {
        queue.add_with(priority, Add::now().priority(Priority(priority)));
    }
    let text = text(&[queue.stats()]);
    let depth = lines(&text, "depth");
    assert_eq!(depth.len(), 26);
    let last = r#"workqueue_depth{name="q",priority="exceeded_cardinality_limit"} 5"#;
    assert_eq!(depth.last(), Some(&last));
}

#[limited::test(start_paused = true)]
async fn every_series_is_declared_once_for_all_queues() {
    let queues = ["a", "b", ""].map(|name| Queue::<u32>::new(Options::new().name(name)));
    let stats = queues.map(|queue| queue.stats());
    let text = text(&stats);
    let types = text.lines().filter(|line| line.starts_with("# TYPE"));
    assert_eq!(types.count(), 7);
    assert_eq!(lines(&text, "adds_total").len(), 2);
}
