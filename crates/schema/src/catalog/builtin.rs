//! The built-in resources, read once from the checked-in catalog.

use std::sync::OnceLock;

use super::Resource;
use super::parse::parse;

const TEXT: &str = include_str!("../../data/kubernetes-1.37.resources");

/// Every resource that Kubernetes serves by default, in the order of discovery: groups by priority, versions
/// preferred first, resources by name.
pub fn builtin() -> &'static [Resource] {
    static RESOURCES: OnceLock<Vec<Resource>> = OnceLock::new();
    RESOURCES.get_or_init(|| parse(TEXT).expect("the checked-in catalog parses"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::catalog::{Scope, Verb};

    fn find(api_version: &str, plural: &str) -> &'static Resource {
        builtin()
            .iter()
            .find(|r| r.api_version() == api_version && &*r.plural == plural)
            .unwrap_or_else(|| panic!("{api_version} {plural} is in the catalog"))
    }

    #[test]
    fn no_resource_stands_twice() {
        let mut seen = HashSet::new();
        for r in builtin() {
            assert!(
                seen.insert((&r.group, &r.version, &r.plural)),
                "{} {}",
                r.api_version(),
                r.plural
            );
        }
    }

    #[test]
    fn only_stable_versions_are_served() {
        for r in builtin() {
            assert!(
                !r.version.contains("alpha") && !r.version.contains("beta"),
                "{}",
                r.api_version()
            );
        }
    }

    #[test]
    fn subresources_speak_the_kind_and_verbs_of_the_real_server() {
        let cases = [
            ("v1", "pods", "log", "v1/Pod", "get"),
            ("v1", "pods", "exec", "v1/PodExecOptions", "create,get"),
            ("v1", "pods", "binding", "v1/Binding", "create"),
            ("v1", "pods", "eviction", "policy/v1/Eviction", "create"),
            ("v1", "pods", "resize", "v1/Pod", "get,patch,update"),
            ("v1", "namespaces", "finalize", "v1/Namespace", "update"),
            (
                "v1",
                "serviceaccounts",
                "token",
                "authentication.k8s.io/v1/TokenRequest",
                "create",
            ),
            (
                "apps/v1",
                "deployments",
                "scale",
                "autoscaling/v1/Scale",
                "get,patch,update",
            ),
            (
                "apps/v1",
                "deployments",
                "status",
                "apps/v1/Deployment",
                "get,patch,update",
            ),
            (
                "certificates.k8s.io/v1",
                "certificatesigningrequests",
                "approval",
                "certificates.k8s.io/v1/CertificateSigningRequest",
                "get,patch,update",
            ),
        ];
        for (api_version, plural, name, kind, verbs) in cases {
            let sub = find(api_version, plural)
                .subresource(name)
                .unwrap_or_else(|| panic!("{plural}/{name}"));
            let found = format!(
                "{}/{}",
                crate::catalog::api_version(&sub.group, &sub.version),
                sub.kind
            );
            let found_verbs: Vec<_> = sub.verbs.iter().map(|v| v.as_str()).collect();
            assert_eq!(
                (found.as_str(), found_verbs.join(",").as_str()),
                (kind, verbs),
                "{plural}/{name}"
            );
        }
    }

    #[test]
    fn reviews_can_only_be_created() {
        for (api_version, plural) in [
            ("authentication.k8s.io/v1", "tokenreviews"),
            ("authentication.k8s.io/v1", "selfsubjectreviews"),
            ("authorization.k8s.io/v1", "subjectaccessreviews"),
            ("authorization.k8s.io/v1", "localsubjectaccessreviews"),
            ("v1", "bindings"),
        ] {
            assert_eq!(find(api_version, plural).verbs, [Verb::Create], "{plural}");
        }
        assert_eq!(
            find("v1", "componentstatuses").verbs,
            [Verb::Get, Verb::List]
        );
    }

    #[test]
    fn namespaces_cannot_be_deleted_as_a_collection() {
        let namespaces = find("v1", "namespaces");
        assert_eq!(namespaces.scope, Scope::Cluster);
        assert!(!namespaces.allows(Verb::DeleteCollection));
        assert!(find("v1", "pods").allows(Verb::DeleteCollection));
    }
}
