//! Webhooks of Guestbook: what the API server asks before it stores one.
//!
//! The functions are pure: they see an object and change or judge it. Not there yet: the manager does not serve them, so
//! nothing calls them on a cluster, and `kubewright deploy` leaves their configurations out.

#![allow(dead_code, reason = "the manager does not call them yet")]

use crate::api::v1::guestbook::Guestbook;

/// Completes an object before it is judged and stored.
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
