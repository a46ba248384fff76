//! What a runtime was made with.

use crate::helper_program::Helper;
use crate::isolation::Isolation;
use crate::state::State;
use crate::table::ImageTable;

/// Everything that a runtime was made with.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) table: ImageTable,
    pub(crate) helper: Helper,
    pub(crate) state: State,
    pub(crate) isolation: Isolation,
}
