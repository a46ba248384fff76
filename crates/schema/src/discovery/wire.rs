//! The shapes of discovery documents, their fields in the order in which the API server writes them.

use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregatedList<'a> {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    pub(super) metadata: Empty,
    pub(super) items: Vec<AggregatedGroup<'a>>,
}

#[derive(Serialize)]
pub(super) struct Empty {}

#[derive(Serialize)]
pub(super) struct AggregatedGroup<'a> {
    pub(super) metadata: Name<'a>,
    pub(super) versions: Vec<AggregatedVersion<'a>>,
}

#[derive(Serialize)]
pub(super) struct Name<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) name: &'a str,
}

#[derive(Serialize)]
pub(super) struct AggregatedVersion<'a> {
    pub(super) version: &'a str,
    pub(super) resources: Vec<AggregatedResource<'a>>,
    pub(super) freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregatedResource<'a> {
    pub(super) resource: &'a str,
    pub(super) response_kind: ResponseKind<'a>,
    pub(super) scope: &'static str,
    pub(super) singular_resource: &'a str,
    pub(super) verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) short_names: &'a [Box<str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) categories: &'a [Box<str>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) subresources: Vec<AggregatedSubresource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregatedSubresource<'a> {
    pub(super) subresource: &'a str,
    pub(super) response_kind: ResponseKind<'a>,
    pub(super) verbs: Vec<&'static str>,
}

#[derive(Serialize)]
pub(super) struct ResponseKind<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
}

#[derive(Serialize)]
pub(super) struct ApiVersions<'a> {
    pub(super) kind: &'static str,
    pub(super) versions: Vec<&'a str>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    pub(super) server_addresses: [ServerAddress<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    pub(super) client_cidr: &'static str,
    pub(super) server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroupList<'a> {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    pub(super) groups: Vec<ApiGroup<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroup<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_version: Option<&'static str>,
    pub(super) name: &'a str,
    pub(super) versions: Vec<GroupVersion<'a>>,
    pub(super) preferred_version: GroupVersion<'a>,
}

#[derive(Serialize, Clone)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupVersion<'a> {
    pub(super) group_version: String,
    pub(super) version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiResourceList<'a> {
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_version: Option<&'static str>,
    pub(super) group_version: String,
    pub(super) resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiResource<'a> {
    pub(super) name: String,
    pub(super) singular_name: &'a str,
    pub(super) namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    pub(super) verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) short_names: &'a [Box<str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) categories: &'a [Box<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) storage_version_hash: Option<String>,
}
