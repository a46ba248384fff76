//! Discovery documents: what a server serves, in the forms that clients ask for.
//!
//! Every function takes the resources that are served, built in and custom in any order, and gives the bytes of one
//! document. Built-in groups come first in the order of the real server, custom groups follow by name.

mod order;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::catalog::{Resource, Scope, Subresource, Verb, api_version};

pub use order::version_order;
use wire::{
    AggregatedGroup, AggregatedList, AggregatedResource, AggregatedSubresource, AggregatedVersion,
    ApiGroup, ApiGroupList, ApiResource, ApiResourceList, ApiVersions, Empty, GroupVersion, Name,
    ResponseKind, ServerAddress,
};

/// Version of the aggregated document that a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregated {
    /// The current form, `apidiscovery.k8s.io/v2`.
    V2,
    /// `apidiscovery.k8s.io/v2beta1`, the same document under an older name.
    V2Beta1,
}

/// The aggregated document of `/api`: the core group.
pub fn aggregated_core(resources: &[&Resource], version: Aggregated) -> Vec<u8> {
    aggregated(resources, version, |group| group.is_empty())
}

/// The aggregated document of `/apis`: every group but the core group.
pub fn aggregated_groups(resources: &[&Resource], version: Aggregated) -> Vec<u8> {
    aggregated(resources, version, |group| !group.is_empty())
}

/// The plain document of `/api`. `server_address` is the `host:port` at which clients reach the server.
pub fn api_versions(resources: &[&Resource], server_address: &str) -> Vec<u8> {
    let sorted = order::sorted(resources);
    let core = chunks(&sorted, |r| &*r.group).find(|group| group[0].group.is_empty());
    bytes(&ApiVersions {
        kind: "APIVersions",
        versions: core.map(versions).unwrap_or_default(),
        server_addresses: [ServerAddress {
            client_cidr: "0.0.0.0/0",
            server_address,
        }],
    })
}

/// The plain document of `/apis`.
pub fn group_list(resources: &[&Resource]) -> Vec<u8> {
    let sorted = order::sorted(resources);
    let groups = chunks(&sorted, |r| &*r.group)
        .filter(|group| !group[0].group.is_empty())
        .map(group_summary)
        .collect();
    bytes(&ApiGroupList {
        kind: "APIGroupList",
        api_version: "v1",
        groups,
    })
}

/// The document of `/apis/{group}`, or nothing when the group is not served.
pub fn group(resources: &[&Resource], name: &str) -> Option<Vec<u8>> {
    let sorted = order::sorted(resources);
    let group = chunks(&sorted, |r| &*r.group).find(|group| *group[0].group == *name)?;
    let mut summary = group_summary(group);
    summary.kind = Some("APIGroup");
    summary.api_version = Some("v1");
    Some(bytes(&summary))
}

/// The document of `/api/{version}` or `/apis/{group}/{version}`, or nothing when that version is not served.
pub fn resource_list(resources: &[&Resource], group: &str, version: &str) -> Option<Vec<u8>> {
    let sorted = order::sorted(resources);
    let served: Vec<_> = sorted
        .iter()
        .filter(|r| *r.group == *group && *r.version == *version)
        .collect();
    if served.is_empty() {
        return None;
    }
    let mut preferred_versions: HashMap<&str, &str> = HashMap::new();
    for resource in sorted.iter().filter(|r| *r.group == *group) {
        // The preferred version comes first.
        let (plural, version) = (&*resource.plural, &*resource.version);
        preferred_versions.entry(plural).or_insert(version);
    }
    let mut entries = Vec::new();
    for resource in served {
        let preferred = preferred_versions[&*resource.plural];
        entries.push(resource_entry(resource, preferred));
        entries.extend(
            resource
                .subresources
                .iter()
                .map(|s| subresource_entry(resource, s)),
        );
    }
    Some(bytes(&ApiResourceList {
        kind: "APIResourceList",
        // The real server leaves it out for the core group.
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: api_version(group, version),
        resources: entries,
    }))
}

/// Eight bytes that change when the version or kind that objects are stored as changes, in base64.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    // FNV-1a: clients compare hashes, nobody computes them.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in [group, "/", version, "/", kind]
        .into_iter()
        .flat_map(str::bytes)
    {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    STANDARD.encode(hash.to_be_bytes())
}

fn aggregated(
    resources: &[&Resource],
    version: Aggregated,
    wanted: impl Fn(&str) -> bool,
) -> Vec<u8> {
    let sorted = order::sorted(resources);
    let items = chunks(&sorted, |r| &*r.group)
        .filter(|group| wanted(&group[0].group))
        .map(aggregated_group)
        .collect();
    bytes(&AggregatedList {
        kind: "APIGroupDiscoveryList",
        api_version: match version {
            Aggregated::V2 => "apidiscovery.k8s.io/v2",
            Aggregated::V2Beta1 => "apidiscovery.k8s.io/v2beta1",
        },
        metadata: Empty {},
        items,
    })
}

fn aggregated_group<'a>(group: &[&'a Resource]) -> AggregatedGroup<'a> {
    AggregatedGroup {
        metadata: Name {
            name: &group[0].group,
        },
        versions: chunks(group, |r| &*r.version)
            .map(|version| AggregatedVersion {
                version: &version[0].version,
                resources: version.iter().map(|r| aggregated_resource(r)).collect(),
                freshness: "Current",
            })
            .collect(),
    }
}

fn aggregated_resource(resource: &Resource) -> AggregatedResource<'_> {
    AggregatedResource {
        resource: &resource.plural,
        response_kind: response_kind(resource, &resource.group, &resource.version, &resource.kind),
        scope: match resource.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        },
        singular_resource: &resource.singular,
        verbs: verbs(&resource.verbs),
        short_names: &resource.short_names,
        categories: &resource.categories,
        subresources: resource
            .subresources
            .iter()
            .map(|sub| AggregatedSubresource {
                subresource: &sub.name,
                response_kind: response_kind(resource, &sub.group, &sub.version, &sub.kind),
                verbs: verbs(&sub.verbs),
            })
            .collect(),
    }
}

/// The real server leaves group and version empty where a built-in resource speaks its own, and writes them for
/// custom resources. Clients take empty as the resource's own.
fn response_kind<'a>(
    resource: &Resource,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
) -> ResponseKind<'a> {
    let own = *group == *resource.group && *version == *resource.version;
    if own && order::group_rank(group) != usize::MAX {
        return ResponseKind {
            group: "",
            version: "",
            kind,
        };
    }
    ResponseKind {
        group,
        version,
        kind,
    }
}

fn group_summary<'a>(group: &[&'a Resource]) -> ApiGroup<'a> {
    let name = &*group[0].group;
    let versions: Vec<_> = versions(group)
        .into_iter()
        .map(|version| GroupVersion {
            group_version: api_version(name, version),
            version,
        })
        .collect();
    ApiGroup {
        kind: None,
        api_version: None,
        name,
        preferred_version: versions[0].clone(),
        versions,
    }
}

fn resource_entry<'a>(resource: &'a Resource, preferred_version: &str) -> ApiResource<'a> {
    // What cannot be watched is not stored.
    let stored = resource.allows(Verb::Watch);
    ApiResource {
        name: resource.plural.to_string(),
        singular_name: &resource.singular,
        namespaced: resource.scope == Scope::Namespaced,
        group: "",
        version: "",
        kind: &resource.kind,
        verbs: verbs(&resource.verbs),
        short_names: &resource.short_names,
        categories: &resource.categories,
        storage_version_hash: stored
            .then(|| storage_version_hash(&resource.group, preferred_version, &resource.kind)),
    }
}

fn subresource_entry<'a>(parent: &Resource, sub: &'a Subresource) -> ApiResource<'a> {
    let own = sub.group == parent.group && sub.version == parent.version;
    ApiResource {
        name: format!("{}/{}", parent.plural, sub.name),
        singular_name: "",
        namespaced: parent.scope == Scope::Namespaced,
        group: if own { "" } else { &sub.group },
        version: if own { "" } else { &sub.version },
        kind: &sub.kind,
        verbs: verbs(&sub.verbs),
        short_names: &[],
        categories: &[],
        storage_version_hash: None,
    }
}

fn versions<'a>(group: &[&'a Resource]) -> Vec<&'a str> {
    chunks(group, |r| &*r.version)
        .map(|version| &*version[0].version)
        .collect()
}

fn verbs(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.as_str()).collect()
}

/// Runs of resources with the same key, which are neighbours in sorted resources. No run is empty.
fn chunks<'s, 'a: 's>(
    sorted: &'s [&'a Resource],
    key: impl Fn(&Resource) -> &str + 's,
) -> impl Iterator<Item = &'s [&'a Resource]> {
    sorted.chunk_by(move |a, b| key(a) == key(b))
}

fn bytes(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("a discovery document has string keys only")
}
