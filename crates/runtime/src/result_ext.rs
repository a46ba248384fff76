//! Turns results of other libraries into results of a reconcile: with words about what failed, and from errors without a type.

use std::error::Error as StdError;
use std::fmt;

use crate::Error;
use crate::outcome::Cause;

/// Says what failed, and takes errors that `?` alone does not take: boxed ones, and those of `anyhow`.
///
/// `?` turns every `std::error::Error` into an [`Error`]. `Box<dyn std::error::Error + Send + Sync>` and `anyhow::Error` lead to
/// an error and are none themselves, so they need [`or_retry`](Self::or_retry) or [`error_context`](Self::error_context). The type of the
/// original error is kept: a conflict inside of an `anyhow::Error` is still a [conflict](Error::is_conflict).
///
/// `Sort` is found by the compiler from the type of the error.
///
/// ```
/// use kubewright_runtime::{Error, ResultExt};
///
/// fn port(text: &str) -> Result<u16, Error> {
///     text.parse::<u16>().error_context(format!("cannot read the port {text:?}"))
/// }
///
/// let error = port("many").unwrap_err();
/// assert_eq!(error.report(), "cannot read the port \"many\": invalid digit found in string");
/// assert!(!error.is_terminal(), "it is tried again");
/// ```
pub trait ResultExt<T, Sort>: sealed::Sealed<Sort> {
    /// The same result, whose error is one of a reconcile: the key runs again, unless the error says that this is pointless.
    ///
    /// ```
    /// use kubewright_runtime::{Error, ResultExt};
    ///
    /// fn push(image: &str) -> anyhow::Result<()> {
    ///     anyhow::bail!("no space for {image}")
    /// }
    ///
    /// fn publish(image: &str) -> Result<(), Error> {
    ///     push(image).or_retry()?;
    ///     Ok(())
    /// }
    ///
    /// assert_eq!(publish("shop").unwrap_err().to_string(), "no space for shop");
    /// ```
    ///
    /// # Errors
    /// The error of the result.
    fn or_retry(self) -> Result<T, Error>;

    /// The same result, whose error is reported after what failed because of it. A terminal error stays terminal.
    ///
    /// ```
    /// use kubewright_runtime::{Error, ResultExt};
    ///
    /// fn connect() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     Err("nobody listens".into())
    /// }
    ///
    /// let error = connect().error_context("cannot ask the registry").unwrap_err();
    /// assert_eq!(error.report(), "cannot ask the registry: nobody listens");
    /// ```
    ///
    /// # Errors
    /// The error of the result, with these words before it.
    fn error_context(self, what: impl fmt::Display) -> Result<T, Error>
    where
        Self: Sized,
    {
        self.or_retry().map_err(|error| error.context(what))
    }
}

/// The sorts of errors, which keep the implementations for them apart.
mod sealed {
    /// A type that implements `std::error::Error`.
    #[derive(Debug)]
    pub enum Typed {}
    /// A type that leads to an error: a box, or that of `anyhow`.
    #[derive(Debug)]
    pub enum Erased {}
    /// The error of a reconcile.
    #[derive(Debug)]
    pub enum Own {}

    pub trait Sealed<Sort> {}
}

use sealed::{Erased, Own, Sealed, Typed};

impl<T, E: StdError + Send + Sync + 'static> Sealed<Typed> for Result<T, E> {}

impl<T, E: StdError + Send + Sync + 'static> ResultExt<T, Typed> for Result<T, E> {
    fn or_retry(self) -> Result<T, Error> {
        self.map_err(Error::from)
    }
}

impl<T, E> Sealed<Erased> for Result<T, E> where
    E: AsRef<dyn StdError + Send + Sync> + Send + Sync + 'static
{
}

impl<T, E> ResultExt<T, Erased> for Result<T, E>
where
    E: AsRef<dyn StdError + Send + Sync> + Send + Sync + 'static,
{
    fn or_retry(self) -> Result<T, Error> {
        self.map_err(|error| Error::retryable(Cause::Erased(Box::new(error))))
    }
}

impl<T> Sealed<Own> for Result<T, Error> {}

impl<T> ResultExt<T, Own> for Result<T, Error> {
    fn or_retry(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientError;

    type Boxed = Box<dyn StdError + Send + Sync>;

    fn conflict() -> ClientError {
        ClientError::Changed {
            resource: "deployments.apps".into(),
            key: crate::Key::new("default", "web"),
        }
    }

    #[test]
    fn conflict_is_one_in_whatever_it_is_wrapped() {
        let typed: Result<(), ClientError> = Err(conflict());
        let boxed: Result<(), Boxed> = Err(conflict().into());
        let erased: Result<(), anyhow::Error> = Err(conflict().into());
        let described = anyhow::Error::from(conflict()).context("publishing failed");
        let errors = [
            typed.or_retry(),
            boxed.or_retry(),
            erased.or_retry(),
            Err(described).error_context("cannot finish"),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert!(error.is_conflict(), "{error:?}");
            assert!(!error.is_terminal(), "{error:?}");
        }
    }

    #[test]
    fn context_comes_before_the_whole_chain() {
        let inner = anyhow::anyhow!("disk full").context("writing failed");
        let error = Err::<(), _>(inner)
            .error_context("cannot back up")
            .unwrap_err();
        assert_eq!(error.report(), "cannot back up: writing failed: disk full");
        let boxed = Err::<(), Boxed>("no answer".into()).error_context("cannot ask");
        assert_eq!(boxed.unwrap_err().report(), "cannot ask: no answer");
    }

    #[test]
    fn terminal_error_stays_terminal_with_context() {
        let terminal = || Err::<(), _>(Error::terminal("no such region"));
        assert!(terminal().or_retry().unwrap_err().is_terminal());
        let error = terminal()
            .error_context("cannot create the bucket")
            .unwrap_err();
        assert!(error.is_terminal());
        assert_eq!(error.report(), "cannot create the bucket: no such region");
    }
}
