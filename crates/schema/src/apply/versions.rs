//! The versions of a kind, as far as server-side apply has to know them.

use serde_json::Value;

use super::form::Typed;

/// The versions that a kind is served at. Managers remember the version they wrote at, and their fields are compared
/// with objects of that version.
pub trait Versions {
    /// The type of objects at a version (`apps/v1`); nothing when there is no such version.
    fn typed(&self, api_version: &str) -> Option<Typed<'_>>;

    /// An object at another version than its own; nothing when there is no such version.
    fn convert(&self, object: &Value, to: &str) -> Option<Value>;
}

/// A kind that is served at one version.
#[derive(Debug, Clone, Copy)]
pub struct OneVersion<'t> {
    /// The version, such as `apps/v1`, that all objects have.
    pub api_version: &'t str,
    /// The type of its objects.
    pub typed: Typed<'t>,
}

impl Versions for OneVersion<'_> {
    fn typed(&self, api_version: &str) -> Option<Typed<'_>> {
        (api_version == self.api_version).then_some(self.typed)
    }

    fn convert(&self, object: &Value, to: &str) -> Option<Value> {
        (to == self.api_version).then(|| object.clone())
    }
}
