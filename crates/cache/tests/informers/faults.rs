//! What goes wrong on the way, one thing at a time.

use kubewright_testing::limit;
use std::sync::Arc;

use kubewright_cache::SyncError;
use kubewright_cache::source::StreamingList;

use crate::running::{options, run, source};
use crate::story::Story;
use crate::wire::{Break, World, stored, until};

#[limited::test(start_paused = true)]
async fn every_kind_of_break_is_survived() {
    for how in [Break::Close, Break::Reset, Break::Truncate, Break::Garbage] {
        let world = World::new().await;
        world.create("a").await;
        let running = run(source(&world), options());
        let (story, record) = Story::new();
        running.informer.add_handler(story).expect("it runs");
        limit(running.informer.synced()).await.expect("it syncs");
        world.wire.break_watches(how);
        world.update("a", "1").await;
        world.create("b").await;
        let truth = limit(world.truth()).await;
        until("the story is right", async || record.lock().led_to(&truth)).await;
        assert_eq!(
            record.lock().about(&["a", "b"]),
            ["initial a", "updated a", "added b"],
            "{how:?}"
        );
    }
}

#[limited::test(start_paused = true)]
async fn busy_server_is_asked_for_the_watch_only() {
    let world = World::new().await;
    let running = run(
        source(&world).with_streaming_list(StreamingList::No),
        options(),
    );
    limit(running.informer.synced()).await.expect("it syncs");
    for _ in 0..3 {
        world.wire.answer_next(429, "TooManyRequests");
    }
    world.create("a").await;
    let reader = running.informer.reader();
    let truth = limit(world.truth()).await;
    until("the store is right", async || stored(&reader) == truth).await;
    world.wire.break_watches(Break::Close);
    until("it watches", async || world.wire.asked().len() == 6).await;
    assert_eq!(
        world.wire.asked(),
        ["list", "watch", "watch", "watch", "watch", "watch"]
    );
}

#[limited::test(start_paused = true)]
async fn forbidden_list_or_watch_is_an_error_for_whoever_waits() {
    for sort in ["list", "watch"] {
        let world = World::new().await;
        world.wire.answer_all("stream", 403, "Forbidden");
        world.wire.answer_all(sort, 403, "Forbidden");
        let running = run(source(&world), options());
        let error = limit(running.informer.synced())
            .await
            .expect_err("it is forbidden");
        assert!(
            matches!(error, SyncError::Refused(failure) if failure.message == "as planned: Forbidden")
        );
        world.wire.heal();
        until("it goes on", async || {
            limit(running.informer.synced()).await.is_ok()
        })
        .await;
    }
}

#[limited::test(start_paused = true)]
async fn relist_shares_what_is_unchanged() {
    let world = World::new().await;
    world.create("a").await;
    let running = run(source(&world), options());
    limit(running.informer.synced()).await.expect("it syncs");
    let reader = running.informer.reader();
    let before = reader
        .entry(&kubewright_cache::Key::new("default", "a"))
        .expect("it is there");
    world.expire().await;
    world.wire.break_watches(Break::Garbage);
    until("it has listed again", async || world.wire.asked().len() > 1).await;
    world.create("b").await;
    let truth = limit(world.truth()).await;
    until("the store is right", async || stored(&reader) == truth).await;
    let after = reader
        .entry(&kubewright_cache::Key::new("default", "a"))
        .expect("it is there");
    assert!(Arc::ptr_eq(before.object(), after.object()));
}
