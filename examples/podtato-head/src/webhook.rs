//! What the API server asks before it stores a PodtatoHeadApp.

use kube::ResourceExt;
use kubewright::webhook::{FieldError, FieldErrors};

use crate::api::PodtatoHeadApp;
use crate::desired;
use crate::part::Part;

/// Names of Services have so many characters at most.
const LONGEST_NAME: usize = 63;

/// Refuses names that cannot be part of the name of a Service, which no schema can see.
///
/// # Errors
/// When the longest name of a Service would be too long, or would not begin with a letter or would have a dot in it.
#[kubewright::webhook(validating)]
pub fn validate(app: &PodtatoHeadApp, _old: Option<&PodtatoHeadApp>) -> Result<(), FieldErrors> {
    let name = app.name_any();
    let lengths = Part::ALL.map(|part| desired::name("", part).len());
    let room = LONGEST_NAME - lengths.into_iter().max().unwrap_or_default();
    let mut errors = FieldErrors::new();
    let mut refuse = |problem: &str| {
        errors.push(FieldError::invalid("metadata.name", name.clone(), problem));
    };
    if name.len() > room {
        refuse(&format!("must be no more than {room} characters"));
    }
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        refuse("must begin with a letter: Services are named after it");
    }
    if name.contains('.') {
        refuse("must not have a dot: Services are named after it");
    }
    errors.into_result()
}
