//! Which metrics APIs somebody else than the server answers for. Pure.

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIServiceSpec;

use super::MetricsApi;

/// The versions of custom metrics that are understood, the newest last.
const CUSTOM: [&str; 2] = ["v1beta1", "v1beta2"];

/// The metrics APIs that have a server of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::controllers::autoscaler) struct Registered {
    /// What pods use, instead of what the nodes of this cluster report.
    pub(super) resource: bool,
    /// Custom metrics, at this version.
    pub(super) custom: Option<&'static str>,
    /// Metrics from outside.
    pub(super) external: bool,
}

impl Registered {
    /// Those that a Service is behind. Others are the server's own.
    pub(super) fn among<'a>(specs: impl Iterator<Item = &'a APIServiceSpec>) -> Self {
        let specs: Vec<_> = specs.filter(|spec| spec.service.is_some()).collect();
        let find = |api: MetricsApi, version: &str| {
            let is_it = |spec: &&&APIServiceSpec| {
                spec.group.as_deref() == Some(api.group())
                    && spec.version.as_deref() == Some(version)
            };
            specs.iter().find(is_it).copied()
        };
        // The version that the group prefers; of two that it likes as much, the newer one.
        let custom = CUSTOM.into_iter().filter_map(|version| {
            let found = find(MetricsApi::Custom, version)?;
            Some((found.version_priority, version))
        });
        let preferred = custom.max_by_key(|(priority, _)| *priority);
        Self {
            resource: find(MetricsApi::Resource, "v1beta1").is_some(),
            custom: preferred.map(|(_, version)| version),
            external: find(MetricsApi::External, "v1beta1").is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(group: &str, version: &str, priority: i32, service: bool) -> APIServiceSpec {
        let service = service.then(|| json!({"namespace": "keda", "name": "adapter"}));
        let spec = json!({"group": group, "version": version, "versionPriority": priority,
            "groupPriorityMinimum": 100, "service": service});
        serde_json::from_value(spec).expect("a spec")
    }

    fn among(specs: &[APIServiceSpec]) -> Registered {
        Registered::among(specs.iter())
    }

    #[test]
    fn apis_without_a_service_and_of_other_groups_are_nobody_elses() {
        let own = spec("metrics.k8s.io", "v1beta1", 100, false);
        let other = spec("gauges.example.com", "v1beta1", 100, true);
        let unknown = spec("external.metrics.k8s.io", "v2", 100, true);
        let found = among(&[own, other, unknown]);
        assert_eq!(found, Registered::default());
    }

    #[test]
    fn custom_metrics_are_asked_for_at_the_preferred_version() {
        let group = "custom.metrics.k8s.io";
        for (priorities, version) in [
            ([Some(100), None], Some("v1beta1")),
            ([None, Some(1)], Some("v1beta2")),
            ([Some(100), Some(100)], Some("v1beta2")),
            ([Some(200), Some(100)], Some("v1beta1")),
            ([None, None], None),
        ] {
            let versions = CUSTOM.into_iter().zip(priorities);
            let specs: Vec<_> = versions
                .filter_map(|(version, priority)| Some(spec(group, version, priority?, true)))
                .collect();
            assert_eq!(among(&specs).custom, version, "{priorities:?}");
        }
    }
}
