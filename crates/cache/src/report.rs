//! Reports what went wrong and did not stop anything, to a callback and to the log.

use std::fmt;
use std::sync::Arc;

use crate::Key;
use crate::source::Failure;

/// Something that went wrong. Work goes on in every case.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Report {
    /// An object could not be read and was skipped.
    Undecodable {
        /// Which one, if that much could be read.
        key: Option<Key>,
        /// Why.
        message: String,
    },
    /// A list or a watch failed; it is tried again.
    Source(Arc<Failure>),
    /// A handler panicked; the event counts as handled.
    HandlerPanicked {
        /// The object of the event.
        key: Key,
    },
    /// An index function panicked; the object has no values in that index.
    IndexPanicked {
        /// The index.
        index: String,
        /// The object.
        key: Key,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable {
                key: Some(key),
                message,
            } => write!(f, "{key} cannot be read: {message}"),
            Self::Undecodable { key: None, message } => {
                write!(f, "an object cannot be read: {message}")
            }
            Self::Source(failure) => fmt::Display::fmt(failure, f),
            Self::HandlerPanicked { key } => write!(f, "a handler panicked at {key}"),
            Self::IndexPanicked { index, key } => write!(f, "index {index} panicked at {key}"),
        }
    }
}

/// Where reports go. Without a receiver they are logged.
#[derive(Clone, Default)]
pub struct Reporter(Option<Arc<Receive>>);

type Receive = dyn Fn(&Report) + Send + Sync;

impl Reporter {
    /// Reports go to this function. It is called from the middle of things: it should be quick and must not block.
    pub fn new(receive: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    pub(crate) fn report(&self, report: &Report) {
        match &self.0 {
            Some(receive) => receive(report),
            None => tracing::warn!("{report}"),
        }
    }

    #[cfg(test)]
    pub(crate) fn recording() -> (Self, Arc<parking_lot::Mutex<Vec<String>>>) {
        let reports = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let sink = reports.clone();
        let reporter = Self::new(move |report| sink.lock().push(report.to_string()));
        (reporter, reports)
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}
