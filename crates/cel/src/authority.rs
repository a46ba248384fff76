//! Whether somebody may do something: the question that expressions put together, and whoever answers it.

use std::fmt;
use std::rc::Rc;

use super::types::Opaque;

/// Who answers questions of expressions about access.
pub trait Authority {
    /// Whether the user of the request, or the service account that the question names, may do it.
    fn decide(&self, question: &Question) -> Verdict;
}

/// What an expression asks: may this user, or a service account, do this?
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Namespace and name of a service account to ask about, instead of the user of the request.
    pub service_account: Option<(String, String)>,
    /// A path that names no resource; what follows is empty then, but for the verb.
    pub path: Option<String>,
    /// The API group of the resource.
    pub group: String,
    /// Plural of the resource.
    pub resource: String,
    /// Part of the resource.
    pub subresource: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// What is to be done.
    pub verb: String,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The reason, or an empty text if there is no explanation.
    pub reason: String,
}

/// A question as far as it has been put together.
#[derive(Clone)]
pub struct Inquiry<'a> {
    pub(crate) authority: &'a dyn Authority,
    /// What may follow: one of the types of the authorizer.
    pub(crate) stage: Opaque,
    pub(crate) question: Rc<Question>,
    /// The resource of the request, for `requestResource`.
    pub(crate) request: Rc<Question>,
}

impl<'a> Inquiry<'a> {
    /// The beginning of a question, with the resource of the request at hand.
    pub fn new(authority: &'a dyn Authority, request: Question) -> Self {
        Self {
            authority,
            stage: Opaque::Authorizer,
            question: Rc::default(),
            request: Rc::new(request),
        }
    }

    pub(crate) fn at(&self, stage: Opaque, edit: impl FnOnce(&mut Question)) -> Self {
        let mut question = (*self.question).clone();
        edit(&mut question);
        Self {
            stage,
            question: Rc::new(question),
            ..self.clone()
        }
    }

    /// The question about the resource of the request.
    pub(crate) fn about_request(&self) -> Self {
        let mut question = (*self.request).clone();
        question
            .service_account
            .clone_from(&self.question.service_account);
        Self {
            stage: Opaque::ResourceCheck,
            question: Rc::new(question),
            ..self.clone()
        }
    }
}

impl fmt::Debug for Inquiry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.stage.name())
    }
}
