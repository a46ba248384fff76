//! The lower half of the chain alone: list-watch, reflector and delta queue, popped by hand.

use kubewright_testing::limit;
use std::sync::Arc;

use kubewright_cache::delta::{self, Delta};
use kubewright_cache::reflector::Reflector;
use kubewright_cache::source::{FailureKind, StreamingList};
use kubewright_cache::{Reporter, Shape, by_hand};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::running::{options, source};
use crate::wire::{Break, World};

fn show(delta: &Delta) -> String {
    match delta {
        Delta::Replace { objects, .. } => {
            let mut names: Vec<_> = objects.iter().map(|o| o.key().name().to_owned()).collect();
            names.sort();
            format!("replace {}", names.join("+"))
        }
        Delta::Apply(object) => format!("apply {}", object.key().name()),
        Delta::Delete(object) => format!("delete {}", object.key().name()),
        other => format!("{other:?}"),
    }
}

#[limited::test(start_paused = true)]
async fn reflector_feeds_a_queue_and_survives_a_broken_connection() {
    for streaming in [StreamingList::Try, StreamingList::No] {
        let world = World::new().await;
        world.create("a").await;
        let (sender, mut receiver) = delta::queue(8);
        let source = Arc::new(source(&world).with_streaming_list(streaming));
        let reflector = Reflector::new(source, sender, options());
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(reflector.run(cancel.clone()));

        let first = limit(receiver.pop()).await.expect("it runs");
        assert!(show(&first).starts_with("replace a"), "{}", show(&first));
        world.create("b").await;
        assert_eq!(
            show(&limit(receiver.pop()).await.expect("it runs")),
            "apply b"
        );
        world.wire.break_watches(Break::Reset);
        world.update("b", "1").await;
        world.delete("a").await;
        assert_eq!(
            show(&limit(receiver.pop()).await.expect("it runs")),
            "apply b"
        );
        assert_eq!(
            show(&limit(receiver.pop()).await.expect("it runs")),
            "delete a"
        );
        cancel.cancel();
        assert!(limit(receiver.pop()).await.is_none());
    }
}

#[limited::test(start_paused = true)]
async fn watch_by_hand_tells_how_it_ends() {
    for (how, expected) in [
        (Break::Close, None),
        (Break::Reset, Some(FailureKind::Interrupted)),
        (Break::Truncate, Some(FailureKind::Interrupted)),
        (Break::Garbage, Some(FailureKind::Malformed)),
    ] {
        let world = World::new().await;
        let source = source(&world);
        let listed = limit(by_hand::list(
            &source,
            Shape::default(),
            Reporter::default(),
        ))
        .await;
        let from = listed.expect("it is listed").resource_version;
        let watch = limit(by_hand::watch(
            &source,
            &from,
            Shape::default(),
            Reporter::default(),
        ))
        .await;
        let mut watch = watch.expect("it is opened");
        world.create("a").await;
        let change = limit(watch.next()).await.expect("it goes on");
        assert_eq!(show(&change.expect("a change")), "apply a");
        world.wire.break_watches(how);
        let end = limit(watch.next()).await;
        let failure = end.map(|end| end.expect_err("nothing changed").kind);
        assert_eq!(failure, expected, "{how:?}");
    }
}
