//! Which kinds a cluster serves at this moment, as discovery says.

use kube::Client;
use kube::discovery::{ApiCapabilities, ApiResource, Discovery, Scope, verbs};

/// A kind and how to reach its objects, at its most stable version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) reach: Reach,
    verbs: Vec<String>,
}

/// Where objects of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Namespaced,
    Cluster,
}

impl Kind {
    pub(crate) fn new(resource: ApiResource, capabilities: &ApiCapabilities) -> Self {
        Self {
            resource,
            reach: match capabilities.scope {
                Scope::Namespaced => Reach::Namespaced,
                Scope::Cluster => Reach::Cluster,
            },
            verbs: capabilities.operations.clone(),
        }
    }

    /// Whether all of these can be done.
    pub(crate) fn can(&self, verbs: &[&str]) -> bool {
        verbs
            .iter()
            .all(|verb| self.verbs.iter().any(|v| v == verb))
    }

    /// Whether objects of the kind can be followed and deleted.
    pub(crate) fn is_collectable(&self) -> bool {
        self.can(&[verbs::LIST, verbs::WATCH, verbs::DELETE])
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }
}

/// Asks for all kinds, in the order of the server.
///
/// # Errors
/// When the server does not answer.
pub(crate) async fn discover(client: &Client) -> Result<Vec<Kind>, kube::Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut kinds = Vec::new();
    for group in discovery.groups_alphabetical() {
        // A kind may be served at another version than the group's preferred one only.
        let resources = group.resources_by_stability();
        kinds.extend(resources.into_iter().map(|(r, c)| Kind::new(r, &c)));
    }
    // The order of a map in the library must not decide ours.
    kinds.sort_by(|a, b| {
        let order = |kind: &Kind| (kind.resource.group.clone(), kind.resource.plural.clone());
        order(a).cmp(&order(b))
    });
    Ok(kinds)
}
