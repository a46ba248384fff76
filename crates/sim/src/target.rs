//! What a request of the Kubernetes API is about, read from its path.

use std::fmt;

/// The resource, and the object if there is one, that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// As in `deployments.apps`, with a subresource behind a slash.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

impl Target {
    /// Reads a path; none for documents such as discovery.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // A namespace itself, and its subresources.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource, ..] => (*plural, Some(*name), Some(*subresource)),
            [] => return None,
        };
        let mut resource = resource(group, plural);
        if let Some(subresource) = subresource {
            resource = format!("{resource}/{subresource}");
        }
        Some(Self {
            resource,
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        })
    }

    /// Namespace and name, as keys are written.
    pub(crate) fn key(&self, name: &str) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        }
    }

    /// The resource without a subresource.
    pub(crate) fn plain(&self) -> &str {
        plain(&self.resource)
    }
}

/// The resource without a subresource.
pub(crate) fn plain(resource: &str) -> &str {
    resource.split('/').next().unwrap_or_default()
}

/// A resource as it is written everywhere here: `pods`, `deployments.apps`.
pub(crate) fn resource(group: &str, plural: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => format!("{plural}.{group}"),
    }
}

/// The resource of a collection of the store: `pods`, `apps/deployments`.
pub(crate) fn of_collection(collection: &str) -> String {
    match collection.split_once('/') {
        Some((group, plural)) => resource(group, plural),
        None => collection.to_owned(),
    }
}

/// Resources that change by themselves and say nothing about an operator. IPAddresses repeat what Services say.
pub(crate) fn is_noise(resource: &str) -> bool {
    matches!(
        plain(resource),
        "events"
            | "events.events.k8s.io"
            | "ipaddresses.networking.k8s.io"
            | "leases.coordination.k8s.io"
            | "nodes"
    )
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("*");
        write!(f, "{} {}", self.resource, self.key(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources_and_objects() {
        for (path, expected) in [
            ("/api/v1/pods", "pods *"),
            ("/api/v1/namespaces/n", "namespaces n"),
            ("/api/v1/namespaces/n/finalize", "namespaces/finalize n"),
            ("/api/v1/namespaces/n/pods", "pods n/*"),
            (
                "/apis/apps/v1/namespaces/n/deployments/d/status",
                "deployments.apps/status n/d",
            ),
            ("/apis/g.io/v1/things/t", "things.g.io t"),
        ] {
            let target = Target::of(path).expect("it names a resource");
            assert_eq!(target.to_string(), expected);
        }
        assert_eq!(Target::of("/apis/apps/v1"), None);
        assert_eq!(Target::of("/version"), None);
        assert_eq!(of_collection("apps/deployments"), "deployments.apps");
    }
}
