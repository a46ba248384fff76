//! What all custom resources have in common.

use super::strategy::{Generation, StatusMeta, Strategy};

/// The strategy of a custom resource; its schema does the rest.
pub(crate) fn custom_strategy(has_status: bool) -> Strategy {
    Strategy {
        generation: Generation::Content,
        has_status,
        status_meta: StatusMeta::Closed,
        allow_unconditional_update: false,
        ..Strategy::PLAIN
    }
}
