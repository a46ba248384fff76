//! Why a JSON patch was refused, in the words of the API server.

use super::MAX_OPERATIONS;
use super::budget::MAX_COPIED_BYTES;
use super::pointer::MAX_LENGTH;
use crate::patch::MAX_DEPTH;

/// Why a JSON patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonPatchError {
    /// The patch is not a list of operations.
    #[error("error decoding patch: {0}")]
    Undecodable(String),
    /// The patch has too many operations.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation does not fit the document, or goes over a limit.
    #[error("{0}")]
    DoesNotApply(OperationError),
}

/// Why one operation of a JSON patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// There is no operation of this name.
    #[error("Unexpected kind: {0}")]
    UnknownKind(String),
    /// The operation has no `path`, or no `from` although it needs one.
    #[error("operation missing {0} field: missing value")]
    NoPointer(&'static str),
    /// A pointer has too many bytes.
    #[error("{0} is longer than {MAX_LENGTH} bytes")]
    LongPointer(&'static str),
    /// A pointer has too many segments.
    #[error("{0} is deeper than {MAX_DEPTH} levels")]
    DeepPointer(&'static str),
    /// A pointer does not start with a slash.
    #[error("{name} does not start with '/': \"{text}\"")]
    RelativePointer {
        /// The member of the operation: `path` or `from`.
        name: &'static str,
        /// The pointer as it was sent.
        text: String,
    },
    /// A `~` in a pointer is followed by neither `0` nor `1`.
    #[error("{name} has a bad escape: \"{text}\"")]
    Escape {
        /// The member of the operation: `path` or `from`.
        name: &'static str,
        /// The pointer as it was sent.
        text: String,
    },
    /// Nothing in the document is at this pointer.
    #[error("operation does not apply: doc is missing path: \"{0}\": missing value")]
    MissingPath(String),
    /// A segment is not an index of the array that it is in.
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    Index(String),
    /// The whole document would be replaced by a value that is neither an object nor an array.
    #[error("replace operation value must be object or array")]
    ScalarDocument,
    /// The value at this pointer is not the one that a `test` expects.
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
    /// The operation would nest the document too deeply.
    #[error("document would be nested deeper than {MAX_DEPTH} levels")]
    DeepDocument,
    /// All `copy` operations together would add too many bytes.
    #[error(
        "unable to copy, the accumulated size increase of copy is over the limit {MAX_COPIED_BYTES}"
    )]
    CopyLimit,
    /// All operations together would shift or walk too many values.
    #[error("the patch shifts too many values")]
    WorkLimit,
}

impl JsonPatchError {
    /// The HTTP status that the API server answers with.
    pub fn status(&self) -> u16 {
        match self {
            Self::Undecodable(_) => 400,
            Self::TooManyOperations(_) => 413,
            Self::DoesNotApply(_) => 422,
        }
    }

    /// Whether a `test` operation found another value than it expects.
    pub fn is_failed_test(&self) -> bool {
        matches!(self, Self::DoesNotApply(OperationError::TestFailed(_)))
    }
}
