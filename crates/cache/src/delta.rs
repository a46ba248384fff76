//! The delta queue: what the reflector saw, in order, until the informer has taken it.
//!
//! Guarantees: strictly first in, first out; bounded, a full queue makes the reflector wait and with it the server; a
//! replacement of everything is one element. Coalescing: a bookmark that follows a bookmark takes its place, and
//! nothing else is ever merged or dropped. Slow handlers are no concern of this queue: they have their own.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::object::Object;

/// One thing that happened to the objects of a kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Delta {
    /// This is everything there is, at this version. What is not in it was deleted, unseen.
    Replace {
        /// All objects.
        objects: Vec<Arc<Object>>,
        /// The version of the whole.
        resource_version: String,
    },
    /// The object is there, in this state.
    Apply(Arc<Object>),
    /// The object was deleted; this was its last state.
    Delete(Arc<Object>),
    /// Nothing happened up to this version.
    Bookmark(String),
}

/// Makes a queue that holds up to `capacity` deltas, at least one.
pub fn queue(capacity: usize) -> (Sender, Receiver) {
    let shared = Arc::new(Shared {
        state: Mutex::default(),
        capacity: capacity.max(1),
        pushed: Notify::new(),
        popped: Notify::new(),
    });
    (Sender(shared.clone()), Receiver(shared))
}

/// The reflector's end.
#[derive(Debug)]
pub struct Sender(Arc<Shared>);

/// The informer's end.
#[derive(Debug)]
pub struct Receiver(Arc<Shared>);

/// Knows how many deltas wait, from outside.
#[derive(Debug, Default)]
pub(crate) struct Depth(Weak<Shared>);

impl Depth {
    pub(crate) fn len(&self) -> usize {
        let queue = self.0.upgrade();
        queue.map_or(0, |queue| queue.state.lock().deltas.len())
    }
}

/// The other end is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is closed")]
pub struct Closed;

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    capacity: usize,
    pushed: Notify,
    popped: Notify,
}

#[derive(Debug, Default)]
struct State {
    deltas: VecDeque<Delta>,
    closed: bool,
}

impl Sender {
    /// Adds a delta, waiting while the queue is full.
    ///
    /// # Errors
    /// When nobody will ever take it.
    pub async fn push(&mut self, delta: Delta) -> Result<(), Closed> {
        let mut delta = Some(delta);
        loop {
            match self.0.offer(&mut delta)? {
                Offer::Taken => {
                    self.0.pushed.notify_one();
                    return Ok(());
                }
                Offer::Full => self.0.popped.notified().await,
            }
        }
    }
}

enum Offer {
    Taken,
    Full,
}

impl Shared {
    fn offer(&self, delta: &mut Option<Delta>) -> Result<Offer, Closed> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Closed);
        }
        if let (Some(Delta::Bookmark(last)), Some(Delta::Bookmark(version))) =
            (state.deltas.back_mut(), delta.as_mut())
        {
            *last = std::mem::take(version);
            return Ok(Offer::Taken);
        }
        if state.deltas.len() >= self.capacity {
            return Ok(Offer::Full);
        }
        state.deltas.extend(delta.take());
        Ok(Offer::Taken)
    }
}

impl Receiver {
    /// The next delta, waiting for one; nothing when the sender is gone and everything is taken.
    pub async fn pop(&mut self) -> Option<Delta> {
        loop {
            {
                let mut state = self.0.state.lock();
                if let Some(delta) = state.deltas.pop_front() {
                    self.0.popped.notify_one();
                    return Some(delta);
                }
                if state.closed {
                    return None;
                }
            }
            self.0.pushed.notified().await;
        }
    }

    /// The next delta if there is one.
    pub fn try_pop(&mut self) -> Option<Delta> {
        let delta = self.0.state.lock().deltas.pop_front()?;
        self.0.popped.notify_one();
        Some(delta)
    }

    /// The number of deltas that wait.
    pub fn len(&self) -> usize {
        self.0.state.lock().deltas.len()
    }

    pub(crate) fn depth(&self) -> Depth {
        Depth(Arc::downgrade(&self.0))
    }

    /// Whether no delta waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.pushed.notify_one();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.popped.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;
    use crate::Shape;

    fn object(name: &str) -> Arc<Object> {
        let json = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        Object::parse(json.as_bytes(), &Shape::default()).expect("it is an object")
    }

    fn show(delta: &Delta) -> String {
        match delta {
            Delta::Replace { objects, .. } => format!("replace {}", objects.len()),
            Delta::Apply(object) => format!("apply {}", object.key()),
            Delta::Delete(object) => format!("delete {}", object.key()),
            Delta::Bookmark(version) => format!("bookmark {version}"),
        }
    }

    fn drain(receiver: &mut Receiver) -> Vec<String> {
        std::iter::from_fn(|| receiver.try_pop())
            .map(|delta| show(&delta))
            .collect()
    }

    #[tokio::test]
    async fn deltas_come_out_in_order_and_bookmarks_merge() {
        let (mut sender, mut receiver) = queue(8);
        let replace = Delta::Replace {
            objects: vec![object("a"), object("b")],
            resource_version: "1".into(),
        };
        for delta in [
            replace,
            Delta::Apply(object("a")),
            Delta::Apply(object("a")),
            Delta::Bookmark("2".into()),
            Delta::Bookmark("3".into()),
            Delta::Delete(object("a")),
            Delta::Bookmark("4".into()),
        ] {
            sender.push(delta).await.expect("it is open");
        }
        assert_eq!(
            drain(&mut receiver),
            [
                "replace 2",
                "apply a",
                "apply a",
                "bookmark 3",
                "delete a",
                "bookmark 4"
            ]
        );
    }

    #[tokio::test]
    async fn full_queue_makes_the_sender_wait() {
        let (mut sender, mut receiver) = queue(1);
        sender
            .push(Delta::Apply(object("a")))
            .await
            .expect("it is open");
        let mut second = Box::pin(sender.push(Delta::Apply(object("b"))));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(receiver.pop().await.is_some());
        assert_eq!(second.await, Ok(()));
    }

    #[tokio::test]
    async fn pop_ends_when_the_sender_is_gone_and_all_is_taken() {
        let (mut sender, mut receiver) = queue(4);
        sender
            .push(Delta::Apply(object("a")))
            .await
            .expect("it is open");
        drop(sender);
        assert!(receiver.pop().await.is_some());
        assert!(receiver.pop().await.is_none());
    }

    #[tokio::test]
    async fn waiting_pop_ends_when_the_sender_goes() {
        let (sender, mut receiver) = queue(4);
        let mut pop = Box::pin(receiver.pop());
        assert!(pop.as_mut().now_or_never().is_none());
        drop(sender);
        assert!(pop.await.is_none());
    }

    #[tokio::test]
    async fn push_fails_when_the_receiver_is_gone() {
        let (mut sender, receiver) = queue(4);
        drop(receiver);
        assert_eq!(sender.push(Delta::Bookmark("1".into())).await, Err(Closed));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn queue_agrees_with_a_list(steps in prop::collection::vec(0_u8..4, 0..60), capacity in 1_usize..5) {
            let (mut sender, mut receiver) = queue(capacity);
            let mut model: VecDeque<String> = VecDeque::new();
            for (n, step) in steps.into_iter().enumerate() {
                let delta = match step {
                    0 => {
                        prop_assert_eq!(receiver.try_pop().map(|d| show(&d)), model.pop_front());
                        continue;
                    }
                    1 => Delta::Bookmark(n.to_string()),
                    2 => Delta::Delete(object(&n.to_string())),
                    _ => Delta::Apply(object(&n.to_string())),
                };
                let merges = step == 1 && model.back().is_some_and(|last| last.starts_with("bookmark"));
                let shown = show(&delta);
                let fits = sender.push(delta).now_or_never().is_some();
                prop_assert_eq!(fits, merges || model.len() < capacity);
                if merges {
                    model.pop_back();
                }
                if fits {
                    model.push_back(shown);
                }
            }
            prop_assert_eq!(VecDeque::from(drain(&mut receiver)), model);
        }
    }
}
