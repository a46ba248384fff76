//! Answers what expressions ask about access: the user of the request, or a service account, against the server's roles.

use kubewright_schema::cel::{Authority, Question, Verdict};

use super::AdmissionChain;
use super::attributes::AdmissionRequest;
use crate::access::{Attributes, Resource, Subject, service_account_groups, service_account_name};
use crate::auth::User;

/// Asks the server's roles on behalf of one request.
pub(super) struct Asker<'c> {
    chain: &'c AdmissionChain,
    user: User,
    /// The resource of the request.
    pub(super) request: Question,
}

impl<'c> Asker<'c> {
    pub(super) fn new(chain: &'c AdmissionChain, request: &AdmissionRequest<'_>) -> Self {
        let resource = &request.served.resource;
        Self {
            chain,
            user: request.requester.user.clone(),
            request: Question {
                group: resource.group.to_string(),
                resource: resource.plural.to_string(),
                subresource: request.subresource.to_owned(),
                namespace: request.namespace().to_owned(),
                name: request.name.to_owned(),
                ..Question::default()
            },
        }
    }
}

impl Authority for Asker<'_> {
    fn decide(&self, question: &Question) -> Verdict {
        let account = question.service_account.as_ref().map(|(namespace, name)| {
            User::new(
                service_account_name(namespace, name),
                service_account_groups(namespace),
            )
            .authenticated()
        });
        let subject = match &question.path {
            Some(path) => Subject::Path(path.as_str().into()),
            None => Subject::Resource(Resource {
                group: &question.group,
                version: "*",
                plural: &question.resource,
                subresource: &question.subresource,
                namespace: &question.namespace,
                name: question.name.as_str().into(),
            }),
        };
        let request = Attributes {
            verb: question.verb.as_str().into(),
            subject,
        };
        let user = account.as_ref().unwrap_or(&self.user);
        let decision = self.chain.access.decide(user, &request);
        Verdict {
            allowed: decision.allowed,
            reason: decision.reason,
        }
    }
}
