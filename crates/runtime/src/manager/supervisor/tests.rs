//! How parts end, and what the supervisor makes of it.

use tokio::time::sleep;

use super::*;
use crate::manager::part::OnEnd;

fn part(stage: Stage, name: &str) -> Part {
    Part::new(stage, name)
}

fn supervisor() -> Supervisor {
    Supervisor::new(CancellationToken::new())
}

/// A part that ends when it is asked to, and after a time.
async fn obeys(stop: CancellationToken, after: Duration) -> Result<(), Error> {
    stop.cancelled().await;
    sleep(after).await;
    Ok(())
}

async fn ignores(_: CancellationToken) -> Result<(), Error> {
    std::future::pending().await
}

async fn failure(supervisor: &mut Supervisor) -> String {
    let failed = tokio::time::timeout(Duration::from_secs(60), supervisor.failure());
    failed.await.expect("it is noticed").to_string()
}

#[limited::test(start_paused = true)]
async fn part_that_fails_panics_or_ends_early_is_named() {
    let (ok, late) = (Duration::ZERO, Duration::from_secs(1));
    let mut failing = supervisor();
    failing.add(part(Stage::Others, "fine"), move |stop| obeys(stop, ok));
    failing.add(
        part(Stage::Servers, "webhook server"),
        move |_| async move {
            sleep(late).await;
            Err(Error::msg("the disk is full"))
        },
    );
    let expected = "webhook server failed: the disk is full";
    assert_eq!(failure(&mut failing).await, expected);

    let mut panicking = supervisor();
    panicking.add(part(Stage::Others, "fine"), move |stop| obeys(stop, ok));
    panicking.add(part(Stage::Servers, "webhook server"), |_| async {
        panic!("no certificate for {}", "localhost")
    });
    let expected = "webhook server panicked: no certificate for localhost";
    assert_eq!(failure(&mut panicking).await, expected);

    let mut ending = supervisor();
    ending.add(part(Stage::Events, "event writer"), |_| async { Ok(()) });
    let expected = "event writer ended although nobody asked it to stop";
    assert_eq!(failure(&mut ending).await, expected);
}

#[limited::test(start_paused = true)]
async fn part_that_panics_while_it_is_made_is_named() {
    let mut supervisor = supervisor();
    supervisor.add(
        part(Stage::Others, "careless"),
        |_| -> std::future::Ready<Result<(), Error>> { panic!("not even a future") },
    );
    let expected = "careless panicked: not even a future";
    assert_eq!(failure(&mut supervisor).await, expected);
}

#[limited::test(start_paused = true)]
async fn part_that_may_end_is_not_missed() {
    let mut supervisor = supervisor();
    let once = Part {
        on_end: OnEnd::Fine,
        ..part(Stage::Others, "migration")
    };
    supervisor.add(once, |_| async { Ok(()) });
    let failed = tokio::time::timeout(Duration::from_secs(60), supervisor.failure()).await;
    assert!(failed.is_err(), "{failed:?}");
    supervisor
        .stop(Duration::from_secs(1))
        .await
        .expect("all is well");
}

#[limited::test(start_paused = true)]
async fn stages_stop_in_the_reverse_order_of_their_start() {
    let mut supervisor = supervisor();
    let order = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    for (stage, name) in [
        (Stage::Events, "events"),
        (Stage::Election, "election"),
        (Stage::Informers, "informers"),
        (Stage::Servers, "servers"),
        (Stage::Others, "others"),
        (Stage::Leader, "leader"),
    ] {
        let order = order.clone();
        supervisor.add(part(stage, name), move |stop| async move {
            obeys(stop, Duration::from_millis(100)).await?;
            order.lock().push(name);
            Ok(())
        });
    }
    let ended = supervisor.stop(Duration::from_secs(30)).await;
    ended.expect("all end in time");
    let expected = [
        "leader",
        "others",
        "servers",
        "informers",
        "election",
        "events",
    ];
    assert_eq!(*order.lock(), expected);
}

#[limited::test(start_paused = true)]
async fn one_deadline_is_for_the_whole_shutdown_and_names_all_that_are_late() {
    let mut supervisor = supervisor();
    for (stage, name) in [
        (Stage::Leader, "controller stuck"),
        (Stage::Others, "deaf"),
        (Stage::Informers, "informers"),
        (Stage::Events, "event writer"),
    ] {
        supervisor.add(part(stage, name), ignores);
    }
    supervisor.add(part(Stage::Election, "leader election"), |stop| {
        obeys(stop, Duration::from_secs(1))
    });
    let start = Instant::now();
    let ended = supervisor.stop(Duration::from_secs(30)).await;
    assert_eq!(
        ended.expect_err("four are late").to_string(),
        "controller stuck, deaf, informers, event writer did not end within 30s"
    );
    assert!(
        start.elapsed() <= Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    assert!(supervisor.cut_off(Duration::from_secs(1)).await.is_empty());
}

#[limited::test(start_paused = true)]
async fn panic_while_stopping_is_reported_and_holds_nobody_up() {
    let mut supervisor = supervisor();
    supervisor.add(part(Stage::Servers, "probe server"), |stop| {
        obeys(stop, Duration::ZERO)
    });
    supervisor.add(part(Stage::Others, "careless"), |stop| async move {
        stop.cancelled().await;
        panic!("it never could stop")
    });
    let start = Instant::now();
    let ended = supervisor.stop(Duration::from_secs(30)).await;
    assert_eq!(
        ended.expect_err("one panicked").to_string(),
        "careless panicked: it never could stop"
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// A thread that is blocked cannot be dropped: the lease is not given up while it is at work, and the supervisor returns.
#[limited::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_is_not_released_while_a_thread_of_the_leader_is_blocked() {
    let mut supervisor = supervisor();
    let (released, done) = (CancellationToken::new(), CancellationToken::new());
    let unblock = done.clone();
    // Also when the test fails: its runtime waits for the thread.
    let _unblock = done.drop_guard();
    supervisor.add(
        part(Stage::Leader, "controller stuck"),
        move |_| async move {
            while !unblock.is_cancelled() {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            Ok(())
        },
    );
    let release = released.clone();
    supervisor.add(
        part(Stage::Election, "leader election"),
        move |stop| async move {
            stop.cancelled().await;
            release.cancel();
            Ok(())
        },
    );
    sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    let ended = supervisor.stop(Duration::from_millis(400)).await;
    assert_eq!(
        ended.expect_err("it is stuck").to_string(),
        "controller stuck did not end within 400ms"
    );
    let left = supervisor.cut_off(Duration::from_millis(50)).await;
    assert_eq!(left, ["controller stuck"]);
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(!released.is_cancelled(), "nobody else may lead yet");
}

#[limited::test(start_paused = true)]
async fn abort_waits_for_nothing() {
    let abort = CancellationToken::new();
    let mut supervisor = Supervisor::new(abort.clone());
    supervisor.add(part(Stage::Leader, "controller slow"), |stop| {
        obeys(stop, Duration::from_secs(3_600))
    });
    let start = Instant::now();
    let again = async {
        sleep(Duration::from_secs(1)).await;
        abort.cancel();
    };
    let (ended, ()) = tokio::join!(supervisor.stop(Duration::from_secs(30)), again);
    assert!(matches!(ended, Err(ManagerError::Aborted)), "{ended:?}");
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}
