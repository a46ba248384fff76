//! What a panic says, and which ones end a controller.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::metrics::Counter;

/// The message of a panic.
pub(crate) fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

/// Calls a function of the user's; if it panics, the panic goes on and says whose function it was.
pub(crate) fn attributed<T>(whose: &str, call: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => value,
        Err(panic) => panic!("{whose} panicked: {}", text(&*panic)),
    }
}

/// The panics of functions that decide what a change leads to. Such a change may be lost, and nobody delivers it again: the first
/// panic ends the controller. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct HandlerPanics(Arc<Record>);

#[derive(Default)]
struct Record {
    /// Where the first one happened, and what it says. Set before `happened` is cancelled.
    first: OnceLock<String>,
    happened: CancellationToken,
    counter: OnceLock<Counter>,
}

impl HandlerPanics {
    /// Counts the panics here from now on.
    pub(crate) fn count_in(&self, counter: Counter) {
        // A controller runs once, so that nobody has set it.
        let _ = self.0.counter.set(counter);
    }

    /// Calls functions of the user's. A panic is recorded with what they were called for.
    pub(crate) fn catch(&self, what: impl FnOnce() -> String, call: impl FnOnce()) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else {
            return;
        };
        let message = format!("{}: {}", what(), text(&*panic));
        tracing::error!("{message}");
        if let Some(counter) = self.0.counter.get() {
            counter.increment();
        }
        // Only the first one is reported; all are counted.
        let _ = self.0.first.set(message);
        self.0.happened.cancel();
    }

    /// Completes when something panics, and says what.
    pub(crate) async fn first(&self) -> String {
        self.0.happened.cancelled().await;
        self.0.first.get().cloned().unwrap_or_default()
    }
}

impl fmt::Debug for HandlerPanics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerPanics({:?})", self.0.first.get())
    }
}
