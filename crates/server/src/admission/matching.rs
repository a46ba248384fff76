//! Which requests a webhook or a policy is about: rules, selectors, and other versions of the same objects.

use std::sync::Arc;

use kubewright_schema::selector::LabelSelector;
use serde_json::Value;

use super::AdmissionChain;
use super::PolicyError;
use super::attributes::{AdmissionRequest, Operation};
use super::lookup;
use crate::kinds::value::{items, strings, text};
use crate::object::{self, StoredLabels};
use crate::resource::Served;
use crate::status::ApiError;

/// Kinds that nobody outside decides about, or a mistake in one could not be corrected any more.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Whether webhooks and policies are not asked at all.
pub(super) fn is_exempt(request: &AdmissionRequest<'_>) -> bool {
    let resource = &request.served.resource;
    &*resource.group == "admissionregistration.k8s.io" && EXEMPT.contains(&&*resource.kind)
}

/// Operations on resources.
#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// `pods`, `pods/status`, `*`, `*/scale`, `pods/*`, `*/*`
    resources: Vec<String>,
    scope: Scope,
    /// Names of objects; none for all of them.
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let list = |field: &str| strings(&rule[field]).map(str::to_owned).collect();
        Self {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources"),
            scope: match text(&rule["scope"]) {
                "Namespaced" => Scope::Namespaced,
                "Cluster" => Scope::Cluster,
                _ => Scope::All,
            },
            names: list("resourceNames"),
        }
    }

    /// Whether it is about a request, taken as one of this resource.
    fn matches(&self, request: &AdmissionRequest<'_>, served: &Served) -> bool {
        let resource = &served.resource;
        let any =
            |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        let scope = match self.scope {
            Scope::All => true,
            Scope::Namespaced => request.namespace.is_some(),
            Scope::Cluster => request.namespace.is_none(),
        };
        scope
            && any(&self.operations, request.operation.as_str())
            && any(&self.groups, &resource.group)
            && any(&self.versions, &resource.version)
            && self.has_resource(&resource.plural, request.subresource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
    }

    fn has_resource(&self, plural: &str, subresource: &str) -> bool {
        self.resources.iter().any(|entry| {
            let (resource, part) = entry.split_once('/').unwrap_or((entry, ""));
            (resource == "*" || resource == plural) && (part == "*" || part == subresource)
        })
    }
}

/// What has to hold for a webhook or a policy to be asked.
#[derive(Debug)]
pub(super) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    equivalence: Equivalence,
    namespaces: LabelSelector,
    objects: LabelSelector,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equivalence {
    /// The same objects at another version or in another group match too.
    Equivalent,
    Exact,
}

impl Criteria {
    /// Reads a webhook (`rules`) or the constraints of a policy (`resourceRules`).
    pub(super) fn read(value: &Value) -> Result<Self, PolicyError> {
        let selector = |field: &str| match &value[field] {
            Value::Null => Ok(LabelSelector::everything()),
            selector => {
                LabelSelector::from_object(selector).map_err(|e| PolicyError(e.to_string()))
            }
        };
        let rules = |field: &str| {
            items(&value[field])
                .iter()
                .map(Rule::read)
                .collect::<Vec<_>>()
        };
        let mut all = rules("rules");
        all.extend(rules("resourceRules"));
        Ok(Self {
            rules: all,
            excluded: rules("excludeResourceRules"),
            equivalence: match text(&value["matchPolicy"]) {
                "Exact" => Equivalence::Exact,
                _ => Equivalence::Equivalent,
            },
            namespaces: selector("namespaceSelector")?,
            objects: selector("objectSelector")?,
        })
    }

    /// The version at which the object is to be shown, or nothing when the request is none of its business.
    pub(super) fn matches(
        &self,
        chain: &AdmissionChain,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<Option<Arc<Served>>, ApiError> {
        let Some(shown) = self.ruled(chain, request) else {
            return Ok(None);
        };
        if self.is_excluded(chain, request) || !self.selects(request, object, old) {
            return Ok(None);
        }
        let selected = self.selects_namespace(chain, request, object, old)?;
        Ok(selected.then_some(shown))
    }

    /// As [`Criteria::matches`] for a binding, where no rules at all mean every request.
    pub(super) fn includes(
        &self,
        chain: &AdmissionChain,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<bool, ApiError> {
        if !self.rules.is_empty() {
            return Ok(self.matches(chain, request, object, old)?.is_some());
        }
        Ok(!self.is_excluded(chain, request)
            && self.selects(request, object, old)
            && self.selects_namespace(chain, request, object, old)?)
    }

    fn ruled(&self, chain: &AdmissionChain, request: &AdmissionRequest<'_>) -> Option<Arc<Served>> {
        first_match(&self.rules, self.equivalence, chain, request)
    }

    fn is_excluded(&self, chain: &AdmissionChain, request: &AdmissionRequest<'_>) -> bool {
        first_match(&self.excluded, self.equivalence, chain, request).is_some()
    }

    /// Options of connections have no labels, not even none: a selector leaves them out whatever it selects.
    fn selects(&self, request: &AdmissionRequest<'_>, object: &Value, old: &Value) -> bool {
        match request.operation {
            Operation::Connect => self.objects.is_everything(),
            _ => self.selects_object(object, old),
        }
    }

    fn selects_object(&self, object: &Value, old: &Value) -> bool {
        let selects = |value: &Value| {
            value.is_object() && self.objects.matches(&StoredLabels(&object::labels(value)))
        };
        self.objects.is_everything() || selects(object) || selects(old)
    }

    /// Objects outside of namespaces are always selected; a namespace is judged by its own labels.
    fn selects_namespace(
        &self,
        chain: &AdmissionChain,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<bool, ApiError> {
        if self.namespaces.is_everything() {
            return Ok(true);
        }
        if request.is("", "Namespace") {
            let current = match request.operation {
                Operation::Delete => old,
                _ => object,
            };
            return Ok(self
                .namespaces
                .matches(&StoredLabels(&object::labels(current))));
        }
        let Some(namespace) = request.namespace else {
            return Ok(true);
        };
        let found = lookup::namespaces(chain).collection.get(namespace);
        Ok(found.is_some_and(|record| self.namespaces.matches(&StoredLabels(record.labels()))))
    }
}

/// The resource that the first fitting rule is about: the one of the request, or else another version of it.
fn first_match(
    rules: &[Rule],
    equivalence: Equivalence,
    chain: &AdmissionChain,
    request: &AdmissionRequest<'_>,
) -> Option<Arc<Served>> {
    if rules
        .iter()
        .any(|rule| rule.matches(request, request.served))
    {
        return Some(request.served.clone());
    }
    if equivalence == Equivalence::Exact || rules.is_empty() {
        return None;
    }
    let mut others = chain.registry.now().versions_of(request.served);
    others.retain(|other| {
        request.subresource.is_empty() || other.resource.subresource(request.subresource).is_some()
    });
    let mut found = rules
        .iter()
        .filter_map(|rule| others.iter().find(|other| rule.matches(request, other)));
    found.next().cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_of_rules_name_parts() {
        for (resources, plural, part, expect) in [
            (json!(["pods"]), "pods", "", true),
            (json!(["pods"]), "pods", "status", false),
            (json!(["pods/status"]), "pods", "status", true),
            (json!(["pods/*"]), "pods", "status", true),
            (json!(["pods/*"]), "pods", "", true),
            (json!(["*"]), "pods", "", true),
            (json!(["*"]), "pods", "status", false),
            (json!(["*/scale"]), "deployments", "scale", true),
            (json!(["*/*"]), "pods", "status", true),
        ] {
            let rule = Rule::read(&json!({"resources": resources}));
            assert_eq!(
                rule.has_resource(plural, part),
                expect,
                "{resources} {plural}/{part}"
            );
        }
    }

    #[test]
    fn old_and_new_objects_are_selected() {
        let criteria = Criteria::read(&json!({"objectSelector": {"matchLabels": {"a": "b"}}}));
        let criteria = criteria.expect("a selector");
        let labelled = json!({"metadata": {"labels": {"a": "b"}}});
        assert!(criteria.selects_object(&labelled, &Value::Null));
        assert!(criteria.selects_object(&json!({}), &labelled));
        assert!(!criteria.selects_object(&json!({}), &Value::Null));
    }
}
