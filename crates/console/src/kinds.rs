//! Which kinds the cluster serves at this moment, from aggregated discovery.

use http::Method;
use serde::{Deserialize, Serialize};

use crate::cluster::{Call, ClusterError, Connection};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// A kind whose objects can be listed, at the version that the server prefers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kind {
    /// As in `apps/v1/deployments` and `v1/pods`: the name of the kind in the API of the console.
    pub(crate) id: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<String>,
}

impl Kind {
    /// The path of the collection, of all namespaces or of one.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str("/namespaces/");
            path.push_str(&crate::cluster::escape(namespace));
        }
        path.push('/');
        path.push_str(&self.plural);
        path
    }

    /// The path of one object.
    pub(crate) fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.path(namespace), crate::cluster::escape(name))
    }

    /// Whether this is the kind of that group and name.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    /// Whether objects of the kind say much and mean little: left out of the overview and of trees.
    pub(crate) fn is_noise(&self) -> bool {
        matches!(
            (self.group.as_str(), self.plural.as_str()),
            ("" | "events.k8s.io", "events")
                | ("coordination.k8s.io", "leases")
                | ("", "endpoints" | "componentstatuses")
        )
    }
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize, Default)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    #[serde(default)]
    response_kind: Option<Response>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct Response {
    kind: String,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

/// Asks for all kinds that can be listed and watched, ordered by group and name.
///
/// # Errors
/// When the server does not answer, or does not aggregate (Kubernetes before 1.26).
pub(crate) async fn discover(connection: &Connection) -> Result<Vec<Kind>, ClusterError> {
    let mut kinds = Vec::new();
    for path in ["/api", "/apis"] {
        let call = Call::new(Method::GET, path).accept(AGGREGATED);
        let body = connection.call(call).await?;
        let groups: Groups = serde_json::from_slice(&body).map_err(ClusterError::malformed)?;
        kinds.extend(groups.items.into_iter().flat_map(kinds_of));
    }
    kinds.sort();
    Ok(kinds)
}

/// The kinds of a group, each at the first version that has it: versions come in the order of preference.
fn kinds_of(group: Group) -> Vec<Kind> {
    let name = group.metadata.name;
    let mut kinds: Vec<Kind> = Vec::new();
    for version in group.versions {
        for resource in version.resources {
            let can = |verb: &str| resource.verbs.iter().any(|known| known == verb);
            let known = kinds.iter().any(|kind| kind.plural == resource.resource);
            let (Some(response), true, false) =
                (&resource.response_kind, can("list") && can("watch"), known)
            else {
                continue;
            };
            let api = if name.is_empty() {
                version.version.clone()
            } else {
                format!("{name}/{}", version.version)
            };
            kinds.push(Kind {
                id: format!("{api}/{}", resource.resource),
                group: name.clone(),
                version: version.version.clone(),
                kind: response.kind.clone(),
                namespaced: resource.scope == "Namespaced",
                short_names: resource.short_names,
                subresources: resource
                    .subresources
                    .into_iter()
                    .map(|sub| sub.subresource)
                    .collect(),
                plural: resource.resource,
                verbs: resource.verbs,
            });
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_taken_at_the_preferred_version_and_what_cannot_be_listed_is_left_out() {
        let group = serde_json::json!({"metadata": {"name": "apps"}, "versions": [
            {"version": "v1", "resources": [
                {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced",
                 "shortNames": ["deploy"], "verbs": ["get", "list", "watch"], "subresources": [{"subresource": "scale"}]},
                {"resource": "reviews", "responseKind": {"kind": "Review"}, "scope": "Cluster", "verbs": ["create"]}]},
            {"version": "v1beta1", "resources": [
                {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced", "verbs": ["list", "watch"]}]}]});
        let kinds = kinds_of(serde_json::from_value(group).expect("it is a group"));
        let ids: Vec<&str> = kinds.iter().map(|kind| kind.id.as_str()).collect();
        assert_eq!(ids, ["apps/v1/deployments"]);
        assert_eq!(
            kinds[0].object_path(Some("a"), "x y"),
            "/apis/apps/v1/namespaces/a/deployments/x%20y"
        );
    }
}
