//! Random writes and random faults: in the end everybody agrees, and every story was sound.

use kubewright_testing::limit;
use std::collections::BTreeMap;
use std::time::Duration;

use kubewright_cache::HandlerOptions;
use kubewright_cache::source::StreamingList;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::running::{options, run, source};
use crate::story::Story;
use crate::wire::{Break, World, stored, until};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// What really happened in a life, so that a test can assert that each kind of it did happen.
#[derive(Debug, Default)]
struct Tally {
    faults: BTreeMap<Fault, u32>,
    relists: u64,
    doubled_bookmarks: usize,
    writes_during_lists: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    EndedWatch,
    DroppedConnection,
    TruncatedFrame,
    NoEvent,
    ExpiredVersion,
    ExpiredByCode,
    TooManyRequests,
    InternalError,
}

const FAULTS: [Fault; 8] = [
    Fault::EndedWatch,
    Fault::DroppedConnection,
    Fault::TruncatedFrame,
    Fault::NoEvent,
    Fault::ExpiredVersion,
    Fault::ExpiredByCode,
    Fault::TooManyRequests,
    Fault::InternalError,
];

#[limited::test(start_paused = true)]
async fn store_and_handlers_agree_with_the_server_whatever_breaks() {
    let mut tally = Tally::default();
    for seed in 0..24 {
        life(seed, &mut tally).await;
    }
    assert!(FAULTS.iter().all(|f| tally.faults[f] > 24), "{tally:?}");
    assert!(tally.relists > 24, "{tally:?}");
    assert!(tally.doubled_bookmarks > 24, "{tally:?}");
    assert!(tally.writes_during_lists > 24, "{tally:?}");
}

async fn life(seed: u64, tally: &mut Tally) {
    let mut random = StdRng::seed_from_u64(seed);
    let world = World::new().await;
    world.wire.double_bookmarks();
    world.wire.slow_lists();
    let streaming = if seed.is_multiple_of(2) {
        StreamingList::Try
    } else {
        StreamingList::No
    };
    let source = source(&world).with_streaming_list(streaming);
    let running = run(source, options().page_size(2).with_random(move || 0.3));
    let (fast, ran) = Story::new();
    let (slow, crawled) = Story::slow(Duration::from_millis(700));
    running.informer.add_handler(fast).expect("it runs");
    let few = HandlerOptions::default()
        .backlog(3)
        .resync(Duration::from_secs(5));
    running
        .informer
        .add_handler_with(slow, few)
        .expect("it runs");
    let mut late = None;
    for step in 0..120 {
        if random.random_bool(0.25) {
            let fault = FAULTS[random.random_range(0..FAULTS.len())];
            *tally.faults.entry(fault).or_default() += 1;
            fault.strike(&world).await;
        }
        tally.writes_during_lists += usize::from(world.wire.is_listing());
        write(&world, &mut random, step).await;
        let longest = if random.random_bool(0.3) { 3_000 } else { 20 };
        let pause = random.random_range(0..longest);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if step == 60 {
            let (story, record) = Story::new();
            running.informer.add_handler(story).expect("it runs");
            late = Some(record);
        }
    }
    world.wire.heal();
    let truth = limit(world.truth()).await;
    let reader = running.informer.reader();
    until("the store agrees", async || stored(&reader) == truth).await;
    for record in [Some(ran), Some(crawled), late].into_iter().flatten() {
        until("the handler agrees", async || record.lock().led_to(&truth)).await;
    }
    assert_eq!(reader.list().len(), truth.len(), "seed {seed}");
    tally.relists += running.informer.stats().relists;
    tally.doubled_bookmarks += world.wire.doubled();
}

async fn write(world: &World, random: &mut StdRng, step: u32) {
    let name = NAMES[random.random_range(0..NAMES.len())];
    let exists = world
        .maps
        .get_opt(name)
        .await
        .expect("the server answers")
        .is_some();
    match (exists, random.random_bool(0.3)) {
        (false, _) => world.create(name).await,
        (true, true) => world.delete(name).await,
        (true, false) => world.update(name, &step.to_string()).await,
    }
}

impl Fault {
    async fn strike(self, world: &World) {
        match self {
            Self::EndedWatch => world.wire.break_watches(Break::Close),
            Self::DroppedConnection => world.wire.break_watches(Break::Reset),
            Self::TruncatedFrame => world.wire.break_watches(Break::Truncate),
            Self::NoEvent => world.wire.break_watches(Break::Garbage),
            Self::ExpiredVersion => {
                world.expire().await;
                world.wire.break_watches(Break::Reset);
            }
            Self::ExpiredByCode => {
                world.wire.answer_next(410, "Expired");
                world.wire.break_watches(Break::Close);
            }
            Self::TooManyRequests => world.wire.answer_next(429, "TooManyRequests"),
            Self::InternalError => world.wire.answer_next(500, "InternalError"),
        }
    }
}
