//! A member of a sharded operator, as its lease says.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::ShardingOptions;
use super::assignment::Shard;

/// The label by which the leases of one operator's members are found.
pub(crate) const LABEL: &str = "kubewright.dev/sharded-operator";
/// The annotation with the numbers of a member's shards.
const SHARDS: &str = "kubewright.dev/shards";
/// The annotation of a member that gives its shards up.
const LEAVING: &str = "kubewright.dev/leaving";

/// What one lease says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) identity: String,
    /// All shards that it may be working on.
    pub(crate) shards: BTreeSet<Shard>,
    /// Whether it gives its shards up, and takes no others.
    pub(crate) leaving: bool,
}

impl Member {
    pub(crate) fn read(lease: &Lease) -> Self {
        let annotations = lease.metadata.annotations.as_ref();
        let annotation = |name: &str| annotations.and_then(|all| all.get(name));
        let shards = annotation(SHARDS).map_or("", String::as_str);
        let holder = lease.spec.as_ref();
        let holder = holder.and_then(|spec| spec.holder_identity.clone());
        Self {
            identity: holder.unwrap_or_default(),
            shards: shards
                .split(',')
                .filter_map(|number| number.parse().ok().map(Shard))
                .collect(),
            leaving: annotation(LEAVING).is_some(),
        }
    }

    /// The lease with this in it, renewed now.
    pub(crate) fn write(
        &self,
        mut lease: Lease,
        options: &ShardingOptions,
        wall: Timestamp,
    ) -> Lease {
        let metadata = &mut lease.metadata;
        metadata.namespace = Some(options.namespace.clone());
        metadata.name = Some(options.lease_name());
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(LABEL.to_owned(), options.name.clone());
        let numbers: Vec<String> = self.shards.iter().map(|it| it.0.to_string()).collect();
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(SHARDS.to_owned(), numbers.join(","));
        if self.leaving {
            annotations.insert(LEAVING.to_owned(), "true".to_owned());
        }
        let spec = lease.spec.get_or_insert_default();
        // Options were checked: whole seconds that fit.
        let seconds = i32::try_from(options.lease_duration.as_secs()).unwrap_or(i32::MAX);
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = Some(seconds);
        spec.acquire_time.get_or_insert(MicroTime(wall));
        spec.renew_time = Some(MicroTime(wall));
        lease
    }
}

/// The name of a lease.
pub(crate) fn name(lease: &Lease) -> &str {
    lease.metadata.name.as_deref().unwrap_or_default()
}

/// The version of a lease.
pub(crate) fn version(lease: &Lease) -> &str {
    lease
        .metadata
        .resource_version
        .as_deref()
        .unwrap_or_default()
}

/// The version as a number. Versions of one kind can be compared since Kubernetes 1.35, and could be for much longer.
pub(crate) fn token(lease: &Lease) -> u64 {
    version(lease).parse().unwrap_or_default()
}

/// How long others wait before they take a member for dead.
pub(crate) fn duration(lease: &Lease) -> Duration {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(seconds.unwrap_or(0).try_into().unwrap_or(0))
}
