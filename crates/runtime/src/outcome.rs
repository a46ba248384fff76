//! How a reconcile ends: an [`Outcome`] when it worked, an [`Error`] when it did not.

use std::error::Error as StdError;
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

/// Why a reconcile failed. Anything that is a `std::error::Error` becomes one with `?`, and what is not, such as a boxed error
/// or one of `anyhow`, with [`ResultExt`](crate::ResultExt).
///
/// The key runs again after the rate limiter's delay, unless the error is [terminal](Error::terminal).
pub struct Error {
    cause: Cause,
    retry: Retry,
}

/// The error behind a failure, kept as it came: whoever asks finds its type.
pub(crate) enum Cause {
    Boxed(Box<dyn StdError + Send + Sync>),
    /// An error that leads to another one and is none itself, as in `anyhow`.
    Erased(Box<dyn AsRef<dyn StdError + Send + Sync> + Send + Sync>),
}

impl Cause {
    fn get(&self) -> &(dyn StdError + Send + Sync + 'static) {
        match self {
            Self::Boxed(error) => &**error,
            Self::Erased(error) => (**error).as_ref(),
        }
    }

    /// The error, what caused it, and so on.
    fn chain(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first: &(dyn StdError + 'static) = self.get();
        std::iter::successors(Some(first), |&error| error.source())
    }
}

/// What failed because of another error.
struct Within {
    what: String,
    source: Cause,
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
            cause: Cause::Boxed(message.to_string().into()),
            retry: Retry::Later,
        }
    }

    /// An error that another run may fix, of a boxed error or of words: what `?` does for errors that have a type.
    ///
    /// ```
    /// # use kubewright_runtime::Error;
    /// fn push() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     Err("the registry is full".into())
    /// }
    ///
    /// let error = push().map_err(Error::new).unwrap_err();
    /// assert_eq!(error.to_string(), "the registry is full");
    /// assert!(!error.is_terminal(), "it is tried again");
    /// ```
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::retryable(Cause::Boxed(cause.into()))
    }

    /// An error that another run cannot fix: it is counted and reported, and the key rests until something changes.
    ///
    /// ```
    /// # use kubewright_runtime::Error;
    /// let error = Error::terminal("spec.port is not a port");
    /// assert!(error.is_terminal(), "only a change of the object can help");
    /// ```
    pub fn terminal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self {
            cause: Cause::Boxed(cause.into()),
            retry: Retry::Never,
        }
    }

    /// Whether another run is pointless.
    pub fn is_terminal(&self) -> bool {
        self.retry == Retry::Never
    }

    /// Whether somebody else changed an object first. The key runs again with the newer state, so this is part of normal work.
    pub fn is_conflict(&self) -> bool {
        self.cause.chain().any(|error| match error.downcast_ref() {
            Some(kube::Error::Api(status)) => {
                status.code == 409 && status.reason != "AlreadyExists"
            }
            _ => error.downcast_ref().is_some_and(ClientError::is_conflict),
        })
    }

    /// The same error, reported after what failed because of it. Whether another run is pointless stays as it was.
    ///
    /// ```
    /// # use kubewright_runtime::Error;
    /// let error = Error::terminal("no such region").context("cannot create the bucket");
    /// assert_eq!(error.report(), "cannot create the bucket: no such region");
    /// assert!(error.is_terminal());
    /// ```
    #[must_use]
    pub fn context(self, what: impl fmt::Display) -> Self {
        let within = Within {
            what: what.to_string(),
            source: self.cause,
        };
        Self {
            retry: self.retry,
            cause: Cause::Boxed(Box::new(within)),
        }
    }

    /// An error of this cause, which is tried again unless a function that refused to change an object said by its own error
    /// that another run is pointless.
    pub(crate) fn retryable(cause: Cause) -> Self {
        let refusal = cause.chain().find_map(|error| {
            let client: Option<&ClientError> = error.downcast_ref();
            client.and_then(ClientError::refusal)
        });
        let retry = refusal.map_or(Retry::Later, |refusal| refusal.retry);
        Self { cause, retry }
    }

    /// Returns the error behind this one.
    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self.cause.get()
    }

    /// The error and what caused it, in one line.
    ///
    /// ```
    /// # use kubewright_runtime::Error;
    /// let error = Error::from("x".parse::<u16>().unwrap_err());
    /// assert_eq!(error.report(), "invalid digit found in string");
    /// ```
    pub fn report(&self) -> String {
        let mut line = self.to_string();
        for cause in self.cause.chain().skip(1) {
            let text = cause.to_string();
            // Some types repeat their source in their own words.
            if !line.ends_with(&text) {
                line.push_str(": ");
                line.push_str(&text);
            }
        }
        line
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Self::retryable(Cause::Boxed(Box::new(cause)))
    }
}

impl fmt::Debug for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.what, self.source.get())
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl StdError for Within {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.get())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.cause.get(), f)
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
