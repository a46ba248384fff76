//! How a reconcile ends: an [`Outcome`] when it worked, an [`Error`] when it did not.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use kubewright_workqueue::Priority;

use crate::client::ClientError;

/// What happens to a key after a reconcile that worked.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::{Outcome, Priority};
///
/// let later = Outcome::requeue_after(Duration::from_secs(60)).priority(Priority::LOW);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    pub(crate) next: Next,
    pub(crate) priority: Option<Priority>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Done,
    Requeue,
    RequeueAfter(Duration),
}

impl Outcome {
    /// Nothing more to do until something changes.
    ///
    /// ```
    /// # use kubewright_runtime::Outcome;
    /// let outcome = Outcome::done();
    /// # drop(outcome);
    /// ```
    pub fn done() -> Self {
        Self::of(Next::Done)
    }

    /// Run again soon, after the rate limiter's delay, which grows with every requeue in a row.
    ///
    /// ```
    /// # use kubewright_runtime::{Outcome, Priority};
    /// let outcome = Outcome::requeue().priority(Priority::NORMAL);
    /// # drop(outcome);
    /// ```
    pub fn requeue() -> Self {
        Self::of(Next::Requeue)
    }

    /// Run again after this time, or earlier if something changes. Failures before are forgotten.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright_runtime::Outcome;
    /// // A certificate that expires is something that no watch reports.
    /// let outcome = Outcome::requeue_after(Duration::from_secs(3600));
    /// # drop(outcome);
    /// ```
    pub fn requeue_after(delay: Duration) -> Self {
        Self::of(Next::RequeueAfter(delay))
    }

    /// Sets how urgent the run that this outcome asks for is. By default it is as urgent as the run that ends.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    fn of(next: Next) -> Self {
        Self {
            next,
            priority: None,
        }
    }
}

/// Why a reconcile failed. Anything that is a `std::error::Error` becomes one with `?`.
///
/// The key runs again after the rate limiter's delay, unless the error is [terminal](Error::terminal).
pub struct Error {
    cause: Box<dyn std::error::Error + Send + Sync>,
    retry: Retry,
}

/// What failed because of another error.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Within {
    what: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    Later,
    Never,
}

impl Error {
    /// An error in words.
    ///
    /// ```
    /// # use kubewright_runtime::Error;
    /// let error = Error::msg("the registry does not answer");
    /// assert_eq!(error.to_string(), "the registry does not answer");
    /// assert!(!error.is_terminal(), "it is tried again");
    /// ```
    pub fn msg(message: impl fmt::Display) -> Self {
        Self {
            cause: message.to_string().into(),
            retry: Retry::Later,
        }
    }

    /// An error that another run cannot fix: it is counted and reported, and the key rests until something changes.
    ///
    /// ```
    /// # use kubewright_runtime::Error;
    /// let error = Error::terminal("spec.port is not a port");
    /// assert!(error.is_terminal(), "only a change of the object can help");
    /// ```
    pub fn terminal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            cause: cause.into(),
            retry: Retry::Never,
        }
    }

    /// Whether another run is pointless.
    pub fn is_terminal(&self) -> bool {
        self.retry == Retry::Never
    }

    /// Whether somebody else changed an object first. The key runs again with the newer state, so this is part of normal work.
    pub fn is_conflict(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*self.cause);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<ClientError>() {
                return error.is_conflict();
            }
            if let Some(kube::Error::Api(status)) = error.downcast_ref() {
                return status.code == 409 && status.reason != "AlreadyExists";
            }
            cause = error.source();
        }
        false
    }

    /// The same error, reported after what failed because of it. Whether another run is pointless stays as it was.
    pub(crate) fn within(self, what: impl fmt::Display) -> Self {
        Self {
            retry: self.retry,
            cause: Box::new(Within {
                what: what.to_string(),
                source: self.cause,
            }),
        }
    }

    /// Returns the error behind this one.
    pub fn cause(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.cause
    }

    /// The error and what caused it, in one line.
    ///
    /// ```
    /// # use kubewright_runtime::Error;
    /// let error = Error::from("x".parse::<u16>().unwrap_err());
    /// assert_eq!(error.report(), "invalid digit found in string");
    /// ```
    pub fn report(&self) -> String {
        let mut line = self.cause.to_string();
        let mut source = self.cause.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Some types repeat their source in their own words.
            if !line.ends_with(&text) {
                line.push_str(": ");
                line.push_str(&text);
            }
            source = cause.source();
        }
        line
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        // A function that refuses to change an object says by its own error whether another run is pointless.
        let client = (&cause as &dyn Any).downcast_ref::<ClientError>();
        let refusal = client.and_then(ClientError::refusal);
        Self {
            retry: refusal.map_or(Retry::Later, |refusal| refusal.retry),
            cause: Box::new(cause),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_tells_the_whole_story_in_one_line() {
        #[derive(Debug, thiserror::Error)]
        #[error("writing the file failed")]
        struct Outer(#[source] std::io::Error);
        let error = Error::from(Outer(std::io::Error::other("disk full")));
        assert_eq!(error.report(), "writing the file failed: disk full");
        assert!(!error.is_terminal());
        assert!(Error::terminal("no such region").is_terminal());
    }
}
