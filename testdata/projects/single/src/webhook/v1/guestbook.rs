//! Webhooks of Guestbook: what the API server asks before it stores one.
//!
//! The functions are pure: they see an object, and default, validate or convert it. `kubewright dev` has the API server call them.

use kubewright::webhook::{Spoke, same_fields};

use crate::api::v1::guestbook::Guestbook;

/// Sets defaults of an object before it is validated and stored.
#[kubewright::webhook(
    mutating,
    name = "mguestbook-v1.webapp.my.domain",
    path = "/mutate-webapp-my-domain-v1-guestbook",
    groups = "webapp.my.domain",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create;update",
    failure_policy = "Fail",
    side_effects = "None",
    admission_review_versions = "v1"
)]
pub fn default(_object: &mut Guestbook) {
    // Your code: fill in what users may leave out and the schema cannot say.
}

/// Says why an object cannot be stored. `old` is what it was before, if it is not new.
///
/// # Errors
/// When it cannot; the text is shown to whoever sent it.
#[kubewright::webhook(
    validating,
    name = "vguestbook-v1.webapp.my.domain",
    path = "/validate-webapp-my-domain-v1-guestbook",
    groups = "webapp.my.domain",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create;update",
    failure_policy = "Fail",
    side_effects = "None",
    admission_review_versions = "v1"
)]
pub fn validate(_object: &Guestbook, _old: Option<&Guestbook>) -> Result<(), String> {
    // Your code: rules that neither the schema nor `#[k8s(rule(..))]` can say.
    Ok(())
}

/// Version v2 to and from this one, which is the hub: every other converts to and from it. Metadata is taken over.
#[kubewright::conversion]
impl Spoke<Guestbook> for crate::api::v2::guestbook::Guestbook {
    fn to_hub(self) -> Result<Guestbook, String> {
        // Your code: move fields that have other names or places.
        same_fields(&self)
    }

    fn from_hub(hub: Guestbook) -> Result<Self, String> {
        // Your code: the way back. Nothing may get lost on the way there and back.
        same_fields(&hub)
    }
}
