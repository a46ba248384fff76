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
        hours: 3,
        nodes: 2,
        seed: 2,
    };
    let once = run(span);
    assert!(once.failures > 0, "no node has failed");
    // Two nodes renew their leases every ten seconds, except while they are silent.
    let leases = once.writes["coordination.k8s.io/leases"];
    assert!((2_050..=2_165).contains(&leases), "{leases} renewals");
    // Two by the hour, one at a quarter past, one in the night; each is written more than twice.
    assert!(once.writes["batch/jobs"] > 4 * 2);
    assert_eq!(once, run(span));
    let other = run(Span { seed: 10, ..span });
    assert_ne!(once.digest, other.digest);
}
