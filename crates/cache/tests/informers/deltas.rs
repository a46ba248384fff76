//! The lower half of the chain alone: list-watch, reflector and delta queue, popped by hand.

use std::sync::Arc;

use kubewright_cache::delta::{self, Delta};
use kubewright_cache::reflector::Reflector;
use kubewright_cache::source::StreamingList;
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

#[tokio::test(start_paused = true)]
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

        let first = receiver.pop().await.expect("it runs");
        assert!(show(&first).starts_with("replace a"), "{}", show(&first));
        world.create("b").await;
        assert_eq!(show(&receiver.pop().await.expect("it runs")), "apply b");
        world.wire.break_watches(Break::Reset);
        world.update("b", "1").await;
        world.delete("a").await;
        assert_eq!(show(&receiver.pop().await.expect("it runs")), "apply b");
        assert_eq!(show(&receiver.pop().await.expect("it runs")), "delete a");
        cancel.cancel();
        assert!(receiver.pop().await.is_none());
    }
}
