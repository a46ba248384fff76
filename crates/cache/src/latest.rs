//! The latest value of something, and waiting until it is as one likes.
//!
//! As tokio's `watch`, but those who wait are woken in the order they came: tokio's order is random, and then whole
//! runs differ.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A value that changes. Cheap to clone; clones are the same value.
pub(crate) struct Latest<T>(Arc<Inner<T>>);

struct Inner<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> Latest<T> {
    /// Looks at the value.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.value.lock())
    }

    /// Changes the value and wakes all who wait.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.0.value.lock());
        self.0.changed.notify_waiters();
    }

    /// Waits until the value gives an answer.
    pub(crate) async fn wait_for<R>(&self, answer: impl Fn(&T) -> Option<R>) -> R {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // Before looking, so that no change is missed in between.
            changed.as_mut().enable();
            if let Some(found) = self.look(&answer) {
                return found;
            }
            changed.await;
        }
    }
}

impl<T: Default> Default for Latest<T> {
    fn default() -> Self {
        Self(Arc::new(Inner {
            value: Mutex::default(),
            changed: Notify::new(),
        }))
    }
}

impl<T> Clone for Latest<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: fmt::Debug> fmt::Debug for Latest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look(|value| value.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubewright_testing::limit;

    #[limited::test]
    async fn those_who_wait_are_woken_in_the_order_they_came() {
        let value = Latest::<bool>::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..32 {
            let (value, order) = (value.clone(), order.clone());
            tasks.spawn(async move {
                value.wait_for(|set| set.then_some(())).await;
                order.lock().push(n);
            });
        }
        tokio::task::yield_now().await;
        value.change(|set| *set = true);
        while limit(tasks.join_next()).await.is_some() {}
        assert_eq!(*order.lock(), (0..32).collect::<Vec<_>>());
    }
}
