//! What all custom resources have in common.

use serde_json::Value;

use super::strategy::{CreateContext, Generation, StatusMeta, Strategy};
use super::value::remove;

/// The strategy of a custom resource; its schema does the rest.
pub(crate) fn custom_strategy(has_status: bool) -> Strategy {
    Strategy {
        generation: Generation::Content,
        has_status,
        status_meta: StatusMeta::Closed,
        allow_unconditional_update: false,
        create: if has_status { drop_status } else { |_, _| {} },
        ..Strategy::PLAIN
    }
}

/// A status is written through its own path, never with the object.
fn drop_status(object: &mut Value, _: &CreateContext<'_>) {
    remove(object, "status");
}
