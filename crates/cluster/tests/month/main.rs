//! Simulated time: days of cron jobs, leases and node failures, and the same history from the same seed.

mod world;

use std::time::Duration;

use world::{History, Span, live};

/// Lives through a span on a runtime of its own, as another process would.
fn run(span: Span) -> History {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime");
    let history = runtime.block_on(live(span)).expect("the cluster lives");
    runtime.shutdown_timeout(Duration::ZERO);
    history
}

#[test]
fn the_same_seed_gives_the_same_history_of_writes() {
    let span = Span {
        hours: 2,
        nodes: 2,
        seed: 2,
        lease: Duration::from_secs(40),
        report: Duration::from_secs(300),
        calm: 20..60,
        outage: 1..20,
    };
    let once = run(span.clone());
    assert!(once.failures > 0, "no node has failed");
    // Two nodes renew their leases every ten seconds, except while they are silent.
    let leases = once.writes["coordination.k8s.io/leases"];
    assert!((1_150..=1_445).contains(&leases), "{leases} renewals");
    // One at a quarter past midnight, which is written more than twice.
    assert!(once.writes["batch/jobs"] > 2);
    assert_eq!(once, run(span.clone()));
    let other = run(Span { seed: 10, ..span });
    assert_ne!(once.digest, other.digest);
}

#[test]
fn a_day_with_long_leases_is_the_same_twice() {
    let span = Span {
        hours: 24,
        nodes: 3,
        seed: 7,
        lease: Duration::from_secs(600),
        report: Duration::from_secs(3_600),
        calm: 240..480,
        outage: 1..60,
    };
    let once = run(span.clone());
    assert!(once.failures > 0, "no node has failed");
    // Three nodes renew their leases every 150 seconds, except while they are silent.
    let leases = once.writes["coordination.k8s.io/leases"];
    assert!((1_600..=1_735).contains(&leases), "{leases} renewals");
    assert_eq!(once, run(span));
}
