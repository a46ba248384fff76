//! Random writes and random faults: in the end everybody agrees, and every story was sound.

use std::time::Duration;

use kubewright_cache::HandlerOptions;
use kubewright_cache::source::StreamingList;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::running::{options, run, source};
use crate::story::Story;
use crate::wire::{Break, World, stored, until};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[tokio::test(start_paused = true)]
async fn store_and_handlers_agree_with_the_server_whatever_breaks() {
    for seed in 0..24 {
        life(seed).await;
    }
}

async fn life(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let world = World::new().await;
    world.wire.double_bookmarks();
    let streaming = if seed.is_multiple_of(2) {
        StreamingList::Try
    } else {
        StreamingList::No
    };
    let source = source(&world).with_streaming_list(streaming);
    let running = run(source, options().page_size(2).with_chance(move || 0.3));
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
            fault(&world, &mut random).await;
        }
        write(&world, &mut random, step).await;
        if random.random_bool(0.3) {
            let pause = random.random_range(0..3_000);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        if step == 60 {
            let (story, told) = Story::new();
            running.informer.add_handler(story).expect("it runs");
            late = Some(told);
        }
    }
    world.wire.heal();
    let truth = world.truth().await;
    let reader = running.informer.reader();
    until("the store agrees", async || stored(&reader) == truth).await;
    for told in [Some(ran), Some(crawled), late].into_iter().flatten() {
        until("the handler agrees", async || told.lock().led_to(&truth)).await;
    }
    assert_eq!(reader.list().len(), truth.len(), "seed {seed}");
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

async fn fault(world: &World, random: &mut StdRng) {
    match random.random_range(0..8) {
        0 => world.wire.break_watches(Break::Close),
        1 => world.wire.break_watches(Break::Reset),
        2 => world.wire.break_watches(Break::Truncate),
        3 => world.wire.break_watches(Break::Garbage),
        4 => {
            world.expire().await;
            world.wire.break_watches(Break::Reset);
        }
        5 => world.wire.answer_next(429, "TooManyRequests"),
        6 => world.wire.answer_next(500, "InternalError"),
        _ => {
            world.wire.answer_next(410, "Expired");
            world.wire.break_watches(Break::Close);
        }
    }
}
