//! The status of ValidatingAdmissionPolicies: which generation of a policy has been looked at.
//!
//! Mirrors `validatingadmissionpolicystatus/controller.go: reconcile`, without the warnings of its type checker: an expression
//! that does not fit the type of an object is reported when it runs.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kubewright_runtime::{Context, Controller, Error, Outcome, Reconciler};

use crate::writes::report;

/// Reports which generation of each policy has been looked at.
pub(crate) fn controller() -> Controller {
    Controller::of::<ValidatingAdmissionPolicy>("validatingadmissionpolicy-status")
        .reconciler(PolicyStatus)
}

struct PolicyStatus;

impl Reconciler<ValidatingAdmissionPolicy> for PolicyStatus {
    async fn reconcile(
        &self,
        policy: Arc<ValidatingAdmissionPolicy>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        report(cx.client(), &*policy, |policy| {
            let generation = policy.metadata.generation;
            let status = policy.status.get_or_insert_default();
            status.observed_generation = generation;
            status.type_checking.get_or_insert_default();
        })
        .await?;
        Ok(Outcome::done())
    }
}
