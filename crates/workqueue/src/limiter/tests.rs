//! The delays of each limiter, as tables.

use super::*;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

fn retry(earlier: u32, now: Duration) -> Retry<'static, ()> {
    Retry {
        key: &(),
        earlier,
        now,
    }
}

/// The delays of the first retries of one key, all asked for at time zero.
fn first_delays<const N: usize>(mut limiter: impl RateLimiter<()>) -> [Duration; N] {
    std::array::from_fn(|earlier| limiter.delay(&retry(earlier as u32, Duration::ZERO)))
}

#[test]
fn exponential_backoff_doubles_up_to_its_cap() {
    let delays = first_delays(ExponentialBackoff::new(MS, 10 * MS));
    assert_eq!(delays, [MS, 2 * MS, 4 * MS, 8 * MS, 10 * MS, 10 * MS]);
}

#[test]
fn exponential_backoff_does_not_overflow() {
    let cases = [
        (MS, 1000 * S, 5, 32 * MS),
        (MS, 1000 * S, 1000, 1000 * S),
        (60 * S, 1000 * 3600 * S, 2, 240 * S),
        (60 * S, 1000 * 3600 * S, 1000, 1000 * 3600 * S),
        (Duration::MAX, Duration::MAX, 1, Duration::MAX),
        (Duration::ZERO, S, 31, Duration::ZERO),
        (Duration::ZERO, S, u32::MAX, Duration::ZERO),
        (
            Duration::from_nanos(1),
            Duration::MAX,
            40,
            Duration::from_nanos(1 << 40),
        ),
    ];
    for (base, max, earlier, expected) in cases {
        let mut limiter = ExponentialBackoff::new(base, max);
        let delay = limiter.delay(&retry(earlier, Duration::ZERO));
        assert_eq!(delay, expected, "{base:?} after {earlier}");
    }
}

#[test]
fn fast_slow_is_slow_after_its_fast_tries() {
    let delays = first_delays(FastSlow::new(5 * MS, 10 * S, 3));
    assert_eq!(delays, [5 * MS, 5 * MS, 5 * MS, 10 * S, 10 * S]);
}

#[test]
fn bucket_lets_a_burst_through_and_then_spaces_retries() {
    let delays = first_delays(Bucket::new(100 * MS, 2));
    let zero = Duration::ZERO;
    assert_eq!(delays, [zero, zero, 100 * MS, 200 * MS]);
}

#[test]
fn bucket_refills_with_time_but_not_beyond_its_burst() {
    let mut bucket = Bucket::new(100 * MS, 2);
    let mut ask = |now| RateLimiter::<()>::delay(&mut bucket, &retry(0, now));
    let delays = [S, S, S, S + 250 * MS, 60 * S, 60 * S, 60 * S].map(&mut ask);
    let zero = Duration::ZERO;
    assert_eq!(delays, [zero, zero, 100 * MS, zero, zero, zero, 100 * MS]);
}

#[test]
fn bucket_without_burst_or_interval_stays_sane() {
    assert_eq!(first_delays(Bucket::new(MS, 0)), [MS, 2 * MS]);
    let zero = Duration::ZERO;
    assert_eq!(first_delays(Bucket::new(zero, 0)), [zero, zero]);
    assert_eq!(
        first_delays(Bucket::new(Duration::MAX, u32::MAX)),
        [zero, zero]
    );
}

#[test]
fn max_of_takes_the_longest_delay() {
    let limiter = MaxOf::new()
        .and(FastSlow::new(5 * MS, 3 * S, 3))
        .and(ExponentialBackoff::new(MS, S));
    assert_eq!(
        first_delays(limiter),
        [5 * MS, 5 * MS, 5 * MS, 3 * S, 3 * S]
    );
    assert_eq!(first_delays(MaxOf::new()), [Duration::ZERO]);
}

#[test]
fn max_of_asks_every_limiter_each_time() {
    let mut limiter = MaxOf::new()
        .and(FastSlow::new(S, S, 0))
        .and(Bucket::new(10 * S, 1));
    let delays = [0, 1].map(|_| limiter.delay(&retry(0, Duration::ZERO)));
    assert_eq!(delays, [S, 10 * S]);
}

#[test]
fn max_wait_is_a_ceiling() {
    let limiter = MaxWait::new(ExponentialBackoff::new(S, 1000 * S), 3 * S);
    assert_eq!(first_delays(limiter), [S, 2 * S, 3 * S, 3 * S]);
}

#[test]
fn controller_default_goes_from_5_ms_to_1000_s() {
    let delays: [Duration; 20] = first_delays(controller_default());
    assert_eq!(delays[..4], [5 * MS, 10 * MS, 20 * MS, 40 * MS]);
    assert_eq!(delays[17], 655_360 * MS);
    assert_eq!(delays[18..], [1000 * S, 1000 * S]);
}

#[test]
fn client_go_default_also_limits_the_total() {
    let mut limiter = client_go_default();
    let delays: Vec<Duration> = (0..102)
        .map(|_| limiter.delay(&retry(0, Duration::ZERO)))
        .collect();
    assert_eq!(delays[99], 5 * MS);
    assert_eq!(delays[100..], [100 * MS, 200 * MS]);
}
