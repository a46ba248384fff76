//! The status of ValidatingAdmissionPolicies: which generation of a policy has been looked at, and which of its expressions
//! do not fit the kinds that it is about.
//!
//! Mirrors `validatingadmissionpolicystatus/controller.go: reconcile` and `validating/typechecking.go`. Types come from the
//! OpenAPI documents of the server, so that built-in and custom kinds are alike. What a schema leaves open is not judged.

mod check;
mod matched;
mod schemas;
mod scope;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};
use kube::core::GroupVersionKind;
use kubewright_runtime::{Context, Controller, Error, Outcome, Reconciler};

use self::check::{Matched, warnings};
use self::matched::MOST;
use self::schemas::Documents;
use self::scope::Params;
use crate::writes::report;

/// Reports what is wrong with the expressions of each policy.
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
        let generation = policy.metadata.generation;
        let status = policy.status.as_ref();
        let seen = status.and_then(|status| status.observed_generation);
        if generation.is_none() || seen == generation {
            return Ok(Outcome::done());
        }
        let spec = policy.spec.clone().unwrap_or_default();
        let mut documents = Documents::new(cx.client().kube());
        let matched = matched(&spec, &mut documents).await?;
        let params = params(&spec, &mut documents).await?;
        let warnings = warnings(&spec, &matched, &params);
        report(cx.client(), &*policy, |policy| {
            let status = policy.status.get_or_insert_default();
            status.observed_generation = generation;
            let checked = status.type_checking.get_or_insert_default();
            checked.expression_warnings = (!warnings.is_empty()).then_some(warnings);
        })
        .await?;
        Ok(Outcome::done())
    }
}

/// The kinds that a policy names, with their types; wildcards name none. A rule that names too many ends the search.
async fn matched(
    spec: &ValidatingAdmissionPolicySpec,
    documents: &mut Documents<'_>,
) -> Result<Vec<Matched>, Error> {
    let mut kinds = BTreeSet::new();
    'rules: for resources in matched::resources(spec) {
        let mut found = 0;
        for resource in resources {
            let Some(kind) = documents.kind_of(&resource).await? else {
                continue;
            };
            kinds.insert((kind.group, kind.version, kind.kind));
            found += 1;
            if found == MOST {
                break 'rules;
            }
        }
    }
    let mut matched = Vec::new();
    for (group, version, kind) in kinds {
        let kind = GroupVersionKind {
            group,
            version,
            kind,
        };
        if let Some(object) = documents.declare(&kind).await? {
            matched.push(Matched { kind, object });
        }
    }
    Ok(matched)
}

async fn params(
    spec: &ValidatingAdmissionPolicySpec,
    documents: &mut Documents<'_>,
) -> Result<Params, Error> {
    let Some(named) = &spec.param_kind else {
        return Ok(Params::None);
    };
    let api_version = named.api_version.as_deref().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = named.kind.as_deref().unwrap_or_default();
    let kind = GroupVersionKind::gvk(group, version, kind);
    Ok(match documents.declare(&kind).await? {
        Some(declaration) => Params::Of(declaration),
        None => Params::Unknown,
    })
}
