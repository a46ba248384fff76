//! What puts a policy to use: for which requests, with which parameters, to what effect.

use std::sync::Arc;

use serde_json::Value;

use super::definition::Definition;
use crate::admission::AdmissionContext;
use crate::admission::PolicyError;
use crate::admission::matching::Criteria;
use crate::kinds::value::{strings, text};
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;

/// A binding of a policy.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    /// None for every request that the policy is about.
    criteria: Option<Result<Criteria, PolicyError>>,
    pub(super) param_ref: Value,
    pub(super) actions: Vec<String>,
}

impl Binding {
    pub(super) fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let resources = Some(&spec["matchResources"]).filter(|resources| resources.is_object());
        Self {
            name: object::name(binding).to_owned(),
            policy: text(&spec["policyName"]).to_owned(),
            criteria: resources.map(Criteria::read),
            param_ref: spec["paramRef"].clone(),
            actions: strings(&spec["validationActions"])
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Whether it puts its policy to use for a request.
    pub(super) fn matches(
        &self,
        cx: AdmissionContext<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<bool, ApiError> {
        match &self.criteria {
            None => Ok(true),
            Some(Err(why)) => Err(ApiError::internal(why)),
            Some(Ok(criteria)) => criteria.includes(cx.chain, cx.request, object, old),
        }
    }
}

/// A policy that is to be applied to a request.
pub(super) struct Application<R> {
    pub(super) policy: Arc<Definition<R>>,
    pub(super) binding: Arc<Binding>,
    /// The version at which the object is shown.
    pub(super) shown: Arc<Served>,
    /// The parameters, or why there are none. Null where the policy takes none.
    pub(super) params: Result<Vec<Value>, PolicyError>,
}

/// The policies that apply to a request, in the order of their names and those of their bindings.
pub(super) async fn applications<R>(
    cx: AdmissionContext<'_>,
    policies: Vec<Arc<Definition<R>>>,
    bindings: Vec<Arc<Binding>>,
    object: &Value,
    old: &Value,
) -> Result<Vec<Application<R>>, ApiError> {
    let mut found = Vec::new();
    for policy in policies {
        let criteria = policy.criteria.as_ref().map_err(ApiError::internal)?;
        let Some(shown) = criteria.matches(cx.chain, cx.request, object, old)? else {
            continue;
        };
        for binding in bindings.iter().filter(|b| b.policy == policy.name) {
            if !binding.matches(cx, object, old)? {
                continue;
            }
            let params = match &policy.param_kind {
                None => Ok(vec![Value::Null]),
                Some(kind) => {
                    kind.collect(cx.chain, &binding.param_ref, cx.request.namespace)
                        .await
                }
            };
            found.push(Application {
                policy: policy.clone(),
                binding: binding.clone(),
                shown: shown.clone(),
                params,
            });
        }
    }
    Ok(found)
}
