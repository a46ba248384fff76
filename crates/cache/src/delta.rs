//! The delta queue: what the reflector saw, in order, until the informer has taken it.
//!
//! Guarantees: strictly first in, first out; bounded, a full queue makes the reflector wait and with it the server; a
//! replacement of everything is one element. Coalescing: a bookmark that follows a bookmark takes its place, and
//! nothing else is ever merged or dropped. Slow handlers do not hold this queue up: each has a backlog of its own.
//!
//! A delta that finds everybody at rest need not wait for somebody to wake up: within an informer the reflector applies it
//! itself, see `Sender::hand_over`.

use std::collections::VecDeque;
use std::fmt;
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
    let sender = Sender {
        shared: shared.clone(),
        taker: None,
    };
    (sender, Receiver(shared))
}

/// The reflector's end of the queue.
pub struct Sender {
    shared: Arc<Shared>,
    taker: Option<Taker>,
}

/// Does with a delta what is done with those that come out of the queue.
type Taker = Box<dyn FnMut(Delta) + Send>;

/// The informer's end of the queue.
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
    /// Whoever took the last delta has not come back for another: it may still be at it.
    at_work: bool,
    closed: bool,
}

impl State {
    fn take(&mut self) -> Option<Delta> {
        let delta = self.deltas.pop_front();
        self.at_work = delta.is_some();
        delta
    }
}

impl Sender {
    /// Who takes deltas that are handed over.
    pub(crate) fn with_taker(mut self, taker: impl FnMut(Delta) + Send + 'static) -> Self {
        self.taker = Some(Box::new(taker));
        self
    }

    /// Adds a delta that no other follows at once. If none waits and none is being worked on, it is taken right here,
    /// which saves the waking of a task.
    ///
    /// # Errors
    /// When nobody will ever take it.
    pub(crate) async fn hand_over(&mut self, delta: Delta) -> Result<(), Closed> {
        match &mut self.taker {
            // Nothing can come in between: only this end adds.
            Some(taker) if self.shared.is_at_rest() => {
                taker(delta);
                Ok(())
            }
            _ => self.push(delta).await,
        }
    }

    /// Adds a delta, waiting while the queue is full.
    ///
    /// # Errors
    /// When nobody will ever take it.
    pub async fn push(&mut self, delta: Delta) -> Result<(), Closed> {
        let mut delta = Some(delta);
        loop {
            match self.shared.offer(&mut delta)? {
                Offer::Taken => {
                    self.shared.pushed.notify_one();
                    return Ok(());
                }
                Offer::Full => self.shared.popped.notified().await,
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

    /// Whether there is somebody to take deltas who has taken all there were and is done with them.
    fn is_at_rest(&self) -> bool {
        let state = self.state.lock();
        !state.closed && !state.at_work && state.deltas.is_empty()
    }
}

impl Receiver {
    /// The next delta, waiting for one; nothing when the sender is gone and everything is taken.
    pub async fn pop(&mut self) -> Option<Delta> {
        loop {
            {
                let mut state = self.0.state.lock();
                if let Some(delta) = state.take() {
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
        let mut state = self.0.state.lock();
        let delta = state.deltas.pop_front()?;
        state.at_work = true;
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
        self.shared.state.lock().closed = true;
        self.shared.pushed.notify_one();
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&self.shared).finish()
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
    use kubewright_testing::limit;
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

    #[limited::test]
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
            limit(sender.push(delta)).await.expect("it is open");
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

    #[limited::test]
    async fn full_queue_makes_the_sender_wait() {
        let (mut sender, mut receiver) = queue(1);
        sender
            .push(Delta::Apply(object("a")))
            .await
            .expect("it is open");
        let mut second = Box::pin(sender.push(Delta::Apply(object("b"))));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(limit(receiver.pop()).await.is_some());
        assert_eq!(limit(second).await, Ok(()));
    }

    #[limited::test]
    async fn pop_ends_when_the_sender_is_gone_and_all_is_taken() {
        let (mut sender, mut receiver) = queue(4);
        sender
            .push(Delta::Apply(object("a")))
            .await
            .expect("it is open");
        drop(sender);
        assert!(limit(receiver.pop()).await.is_some());
        assert!(limit(receiver.pop()).await.is_none());
    }

    #[limited::test]
    async fn waiting_pop_ends_when_the_sender_goes() {
        let (sender, mut receiver) = queue(4);
        let mut pop = Box::pin(receiver.pop());
        assert!(pop.as_mut().now_or_never().is_none());
        drop(sender);
        assert!(limit(pop).await.is_none());
    }

    #[limited::test]
    async fn push_fails_when_the_receiver_is_gone() {
        let (mut sender, receiver) = queue(4);
        drop(receiver);
        assert_eq!(
            limit(sender.push(Delta::Bookmark("1".into()))).await,
            Err(Closed)
        );
    }

    /// A queue whose deltas are logged when they are taken on the spot.
    fn logging(capacity: usize) -> (Sender, Receiver, Arc<Mutex<Vec<String>>>) {
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let (sender, receiver) = queue(capacity);
        let taken = log.clone();
        let sender = sender.with_taker(move |delta| taken.lock().push(show(&delta)));
        (sender, receiver, log)
    }

    #[limited::test]
    async fn delta_is_taken_on_the_spot_when_everybody_is_at_rest() {
        let (mut sender, mut receiver, log) = logging(4);
        let apply = |name| Delta::Apply(object(name));
        assert_eq!(limit(sender.hand_over(apply("a"))).await, Ok(()));
        assert_eq!(*log.lock(), ["apply a"]);

        // "b" is at work until the receiver asks for more: "c" has to wait behind it.
        assert_eq!(limit(sender.push(apply("b"))).await, Ok(()));
        assert!(limit(receiver.pop()).await.is_some());
        assert_eq!(limit(sender.hand_over(apply("c"))).await, Ok(()));
        assert_eq!(drain(&mut receiver), ["apply c"]);

        assert!(receiver.pop().now_or_never().is_none());
        assert_eq!(limit(sender.hand_over(apply("d"))).await, Ok(()));
        assert_eq!(*log.lock(), ["apply a", "apply d"]);

        drop(receiver);
        assert_eq!(limit(sender.hand_over(apply("e"))).await, Err(Closed));
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

        #[test]
        fn order_is_kept_whoever_takes_a_delta(steps in prop::collection::vec(0_u8..4, 0..60)) {
            let (mut sender, mut receiver, log) = logging(60);
            let mut expected = Vec::new();
            let mut at_work = None;
            let mut work = |receiver: &mut Receiver| {
                // Done with the one before.
                log.lock().extend(at_work.take());
                at_work = receiver.pop().now_or_never().flatten().map(|delta| show(&delta));
                at_work.is_some()
            };
            for (n, step) in steps.into_iter().enumerate() {
                let delta = Delta::Apply(object(&n.to_string()));
                let shown = show(&delta);
                let added = match step {
                    0 => sender.push(delta).now_or_never(),
                    1 => sender.hand_over(delta).now_or_never(),
                    _ => {
                        work(&mut receiver);
                        continue;
                    }
                };
                prop_assert_eq!(added, Some(Ok(())));
                expected.push(shown);
            }
            while work(&mut receiver) {}
            prop_assert_eq!(&*log.lock(), &expected);
        }
    }
}
