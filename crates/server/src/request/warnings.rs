//! Warnings for the client, gathered on the way through a request.

use std::sync::Arc;

use parking_lot::Mutex;

/// The warnings of one request. They are sent whether the request succeeds or not. Clones share the same list, so
/// whoever has a warning adds it where it comes up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds warnings that have not been given yet.
    pub(crate) fn extend(&self, more: impl IntoIterator<Item = String>) {
        let mut list = self.0.lock();
        for warning in more {
            if !list.contains(&warning) {
                list.push(warning);
            }
        }
    }

    /// All warnings, in the order in which they came up.
    pub(crate) fn to_vec(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_list_without_repetitions() {
        let warnings = Warnings::default();
        warnings.clone().extend(["a".to_owned(), "b".to_owned()]);
        warnings.extend(["a".to_owned()]);
        assert_eq!(warnings.to_vec(), ["a", "b"]);
    }
}
