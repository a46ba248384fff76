//! Facts about metrics.

use std::time::Duration;

use kubewright_cache::Key;

use super::*;

fn lines(text: &str, start: &str) -> Vec<String> {
    let wanted = |line: &&str| line.starts_with(start);
    text.lines().filter(wanted).map(str::to_owned).collect()
}

#[test]
fn families_have_headers_and_come_sorted() {
    let metrics = Metrics::new();
    let b = metrics.counter("b_total", "Bees.", &["hive"]).expect("new");
    let a = metrics.gauge("a", "Ants\\\nand more", &[]).expect("new");
    b.with(["one"]).add(1.5);
    a.with([]).set(-2.0);
    let expected = "# HELP a Ants\\\\\\nand more\n# TYPE a gauge\na -2\n\
                    # HELP b_total Bees.\n# TYPE b_total counter\nb_total{hive=\"one\"} 1.5\n";
    assert_eq!(metrics.render(), expected);
}

#[test]
fn label_values_are_escaped() {
    let metrics = Metrics::new();
    let family = metrics.counter("c", "", &["x"]).expect("new");
    family.with(["a\\b\"c\nd"]).increment();
    assert_eq!(
        lines(&metrics.render(), "c{"),
        [r#"c{x="a\\b\"c\nd"} 1"#.to_string()]
    );
}

#[test]
fn histograms_count_cumulatively() {
    let metrics = Metrics::new();
    let family = metrics
        .histogram("h", "", &["x"], &[0.1, 1.0])
        .expect("new");
    let histogram = family.with(["y"]);
    for value in [0.05, 0.1, 0.5, 3.0, f64::NAN] {
        histogram.observe(value);
    }
    let expected = [
        "h_bucket{x=\"y\",le=\"0.1\"} 2",
        "h_bucket{x=\"y\",le=\"1\"} 3",
        "h_bucket{x=\"y\",le=\"+Inf\"} 4",
        "h_sum{x=\"y\"} 3.65",
        "h_count{x=\"y\"} 4",
    ];
    assert_eq!(lines(&metrics.render(), "h_"), expected);
}

#[test]
fn names_are_checked() {
    let metrics = Metrics::new();
    for name in ["", "1a", "a-b", "ä"] {
        let error = metrics.counter(name, "", &[]).expect_err("not a name");
        assert_eq!(error, RegisterError::Name(name.into()));
    }
    for labels in [["a", "a"], ["le", "b"], ["__a", "b"], ["a:b", "c"]] {
        let result = metrics.counter("fine", "", &labels);
        assert!(matches!(result, Err(RegisterError::Label(_))), "{labels:?}");
    }
    for bounds in [[1.0, 1.0], [2.0, 1.0], [1.0, f64::INFINITY]] {
        let result = metrics.histogram("fine", "", &[], &bounds);
        assert!(matches!(result, Err(RegisterError::Buckets(_))));
    }
}

#[test]
fn same_family_is_shared_and_another_of_its_name_is_refused() {
    let metrics = Metrics::new();
    let first = metrics.counter("c", "", &["x"]).expect("new");
    let second = metrics.clone().counter("c", "", &["x"]).expect("shared");
    first.with(["1"]).increment();
    second.with(["1"]).increment();
    assert_eq!(first.with(["1"]).get(), 2.0);
    let different = Err(RegisterError::Different("c".into()));
    assert_eq!(metrics.counter("c", "", &["y"]).map(drop), different);
    assert_eq!(metrics.gauge("c", "", &["x"]).map(drop), different);
}

#[test]
fn series_beyond_the_limit_share_one() {
    let metrics = Metrics::new();
    let family = metrics.counter("c", "", &["x"]).expect("new");
    for i in 0..SERIES + 10 {
        family.with([&i.to_string()]).increment();
    }
    let shared = family.with(["exceeded_cardinality_limit"]);
    assert_eq!(shared.get(), 10.0);
    assert_eq!(lines(&metrics.render(), "c{").len(), SERIES + 1);
}

#[test]
fn controller_series_are_there_before_anything_happens() {
    let metrics = Metrics::new();
    metrics.controller("foo");
    let text = metrics.render();
    for expected in [
        "controller_runtime_reconcile_total{controller=\"foo\",result=\"requeue_after\"} 0",
        "controller_runtime_reconcile_errors_total{controller=\"foo\"} 0",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"foo\"} 0",
        "controller_runtime_reconcile_panics_total{controller=\"foo\"} 0",
        "controller_runtime_reconcile_timeouts_total{controller=\"foo\"} 0",
        "controller_runtime_reconcile_time_seconds_count{controller=\"foo\"} 0",
        "controller_runtime_max_concurrent_reconciles{controller=\"foo\"} 0",
        "controller_runtime_active_workers{controller=\"foo\"} 0",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains("kubewright_hot_loops_total"));
}

#[test]
fn verdicts_are_counted_as_controller_runtime_does() {
    let cases = [
        (Verdict::Success, "success", [0, 0]),
        (Verdict::Requeue, "requeue", [0, 0]),
        (Verdict::RequeueAfter, "requeue_after", [0, 0]),
        (Verdict::Error, "error", [1, 0]),
        (Verdict::Terminal, "error", [1, 1]),
    ];
    for (verdict, result, [errors, terminal]) in cases {
        let metrics = Metrics::new();
        let controller = metrics.controller("foo");
        controller.finished(verdict, Duration::from_millis(30));
        let text = metrics.render();
        for expected in [
            format!("_total{{controller=\"foo\",result=\"{result}\"}} 1\n"),
            format!("e_reconcile_errors_total{{controller=\"foo\"}} {errors}\n"),
            format!("terminal_reconcile_errors_total{{controller=\"foo\"}} {terminal}\n"),
            "reconcile_time_seconds_count{controller=\"foo\"} 1\n".to_string(),
        ] {
            assert!(text.contains(&expected), "{verdict:?}: {expected}");
        }
    }
}

#[test]
fn hot_loops_are_named() {
    let metrics = Metrics::new();
    let controller = metrics.controller("foo");
    controller.hot_loop(&Key::new("default", "web"));
    let expected = "kubewright_hot_loops_total{controller=\"foo\",key=\"default/web\"} 1";
    assert!(metrics.render().contains(expected));
}

#[test]
fn requests_and_leadership_are_reported() {
    let metrics = Metrics::new();
    let requests = metrics.requests();
    requests.answered("GET", "10.0.0.1:443", 200, Duration::from_millis(10));
    requests.unanswered("PUT", "10.0.0.1:443", Duration::from_secs(1));
    metrics.leader("op").set(1.0);
    let text = metrics.render();
    for expected in [
        "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"10.0.0.1:443\"} 1",
        "rest_client_requests_total{code=\"<error>\",method=\"PUT\",host=\"10.0.0.1:443\"} 1",
        "rest_client_request_duration_seconds_count{verb=\"GET\",host=\"10.0.0.1:443\"} 1",
        "leader_election_master_status{name=\"op\"} 1",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn collectors_add_their_text_and_the_latest_of_a_name_stays() {
    let metrics = Metrics::new();
    metrics.collect("queues", |out| out.push_str("old 1\n"));
    metrics.collect("queues", |out| out.push_str("new 1\n"));
    assert_eq!(metrics.render(), "new 1\n");
}

#[test]
fn operator_that_takes_a_built_in_name_does_not_stop_the_controller() {
    let metrics = Metrics::new();
    let name = "controller_runtime_active_workers";
    metrics.counter(name, "", &["mine"]).expect("free");
    metrics.controller("foo").active(1);
}

#[test]
fn collector_may_set_a_gauge_that_is_written_with_the_others() {
    let metrics = Metrics::new();
    let controller = metrics.controller("foo");
    metrics.collect("queues", move |_| controller.active(3));
    let expected = "controller_runtime_active_workers{controller=\"foo\"} 3\n";
    assert!(metrics.render().contains(expected));
}
