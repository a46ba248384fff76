//! Slices that mirror the Endpoints which users make for services without a selector.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointSubset, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{Context, Controller, Error, Outcome, Reconciler, Watch};

use super::{HEADLESS, MANAGED_BY, MOST, SERVICE, put};
use crate::controllers::WORKERS;
use crate::pods::adopt::key;
use crate::pods::claim::controller_reference;
use crate::pods::label;

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Keeps Endpoints from being mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints that are a lock and lead nowhere.
const LOCK: &str = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The most addresses of a subset that are mirrored.
const MOST_ADDRESSES: usize = 1_000;

/// The controller of mirrored slices.
pub(crate) fn controller() -> Controller {
    let services = Watch::of::<Service>().map(|service, _| vec![key(&service.metadata)]);
    Controller::of::<Endpoints>("endpointslicemirroring-controller")
        .owns::<EndpointSlice>()
        .watches(services)
        .workers(WORKERS)
        .reconciler(Mirror)
}

struct Mirror;

impl Reconciler<Endpoints> for Mirror {
    async fn reconcile(&self, endpoints: Arc<Endpoints>, cx: &Context) -> Result<Outcome, Error> {
        if endpoints.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        let service = cx.client().get::<Service>(cx.key()).await?;
        let mirrored = match service.filter(|service| is_mirrored(&endpoints, service)) {
            Some(service) => mirror(&endpoints, &service),
            None => Mirrored::default(),
        };
        if mirrored.invalid > 0 {
            let message = format!(
                "Skipped {} invalid IP addresses when mirroring to EndpointSlices",
                mirrored.invalid
            );
            cx.event(&*endpoints, EventKind::Warning, "InvalidAddress", message);
        }
        if mirrored.skipped > 0 {
            let message = format!(
                "A max of {MOST_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
                mirrored.skipped
            );
            cx.event(
                &*endpoints,
                EventKind::Warning,
                "TooManyAddressesToMirror",
                message,
            );
        }
        put(cx.client(), &*endpoints, mirrored.slices).await?;
        Ok(Outcome::done())
    }
}

/// Slices, and what is not in them.
#[derive(Debug, Default)]
struct Mirrored {
    slices: Vec<EndpointSlice>,
    invalid: usize,
    skipped: usize,
}

fn is_mirrored(endpoints: &Endpoints, service: &Service) -> bool {
    let metadata = &endpoints.metadata;
    let locks = metadata
        .annotations
        .as_ref()
        .is_some_and(|notes| notes.contains_key(LOCK));
    let selector = service
        .spec
        .as_ref()
        .and_then(|spec| spec.selector.as_ref());
    label(metadata, SKIP) != Some("true")
        && !locks
        && service.metadata.deletion_timestamp.is_none()
        && selector.is_none_or(BTreeMap::is_empty)
}

fn mirror(endpoints: &Endpoints, service: &Service) -> Mirrored {
    let mut mirrored = Mirrored::default();
    for subset in endpoints.subsets.iter().flatten() {
        let mut families: BTreeMap<&str, Vec<Endpoint>> = BTreeMap::new();
        let ready = subset.addresses.iter().flatten().map(|a| (a, true));
        let others = subset
            .not_ready_addresses
            .iter()
            .flatten()
            .map(|a| (a, false));
        let mut taken = 0;
        for (address, ready) in ready.chain(others) {
            let Ok(ip) = address.ip.parse::<IpAddr>() else {
                mirrored.invalid += 1;
                continue;
            };
            if taken == MOST_ADDRESSES {
                mirrored.skipped += 1;
                continue;
            }
            taken += 1;
            let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
            let list = families.entry(family).or_default();
            list.push(endpoint(address, ready));
        }
        for (family, list) in families {
            for part in list.chunks(MOST) {
                let number = mirrored.slices.len();
                let slice = slice(endpoints, service, subset, family, part, number);
                mirrored.slices.push(slice);
            }
        }
    }
    mirrored
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            ..EndpointConditions::default()
        }),
        hostname: address.hostname.clone(),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

fn slice(
    endpoints: &Endpoints,
    service: &Service,
    subset: &EndpointSubset,
    family: &str,
    part: &[Endpoint],
    number: usize,
) -> EndpointSlice {
    let name = endpoints.metadata.name.clone().unwrap_or_default();
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let address = service
        .spec
        .as_ref()
        .and_then(|spec| spec.cluster_ip.as_deref());
    if address == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    let ports = subset.ports.iter().flatten().map(|port| EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.port),
        protocol: Some(port.protocol.clone().unwrap_or("TCP".to_owned())),
        app_protocol: port.app_protocol.clone(),
    });
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(format!("{name}-mirror-{number}")),
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            owner_references: Some(vec![controller_reference(endpoints)]),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(part.to_vec()),
        ports: Some(ports.collect()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn endpoints(metadata: Value, subsets: Value) -> Endpoints {
        let mut object = json!({"metadata": metadata, "subsets": subsets});
        object["metadata"]["name"] = json!("db");
        object["metadata"]["namespace"] = json!("n");
        serde_json::from_value(object).expect("they are endpoints")
    }

    fn service(spec: Value) -> Service {
        let service = json!({"metadata": {"name": "db", "namespace": "n"}, "spec": spec});
        serde_json::from_value(service).expect("it is a service")
    }

    #[test]
    fn endpoints_of_services_without_a_selector_are_mirrored() {
        let plain = || service(json!({}));
        let selecting = service(json!({"selector": {"app": "db"}}));
        for (metadata, service, expected) in [
            (json!({}), plain(), true),
            (json!({}), selecting, false),
            (json!({"labels": {SKIP: "true"}}), plain(), false),
            (json!({"labels": {SKIP: "false"}}), plain(), true),
            (json!({"annotations": {LOCK: "{}"}}), plain(), false),
        ] {
            let found = is_mirrored(&endpoints(metadata.clone(), json!([])), &service);
            assert_eq!(found, expected, "{metadata} {service:?}");
        }
    }

    #[test]
    fn each_subset_and_family_has_its_slices() {
        let many = |count: usize| -> Vec<Value> {
            let ip = |index| format!("10.0.{}.{}", index / 250, index % 250 + 1);
            (0..count).map(|index| json!({"ip": ip(index)})).collect()
        };
        type Slices = &'static [(&'static str, usize)];
        let cases: [(Value, Slices, (usize, usize)); 6] = [
            (json!([]), &[], (0, 0)),
            (
                json!([{"addresses": [{"ip": "10.0.0.1"}], "notReadyAddresses": [{"ip": "10.0.0.2"}]}]),
                &[("IPv4", 2)],
                (0, 0),
            ),
            (
                json!([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}]),
                &[("IPv4", 1), ("IPv6", 1)],
                (0, 0),
            ),
            (
                json!([{"addresses": many(101)}]),
                &[("IPv4", 100), ("IPv4", 1)],
                (0, 0),
            ),
            (json!([{"addresses": [{"ip": "nowhere"}]}]), &[], (1, 0)),
            (
                json!([{"addresses": many(900), "notReadyAddresses": many(150)}]),
                &[("IPv4", 100); 10],
                (0, 50),
            ),
        ];
        for (subsets, expected, left_out) in cases {
            let made = mirror(&endpoints(json!({}), subsets.clone()), &service(json!({})));
            let count = |slice: &EndpointSlice| slice.endpoints.as_ref().map_or(0, Vec::len);
            let found: Vec<_> = made
                .slices
                .iter()
                .map(|s| (&*s.address_type, count(s)))
                .collect();
            assert_eq!(found, expected);
            assert_eq!((made.invalid, made.skipped), left_out);
        }
    }

    #[test]
    fn slices_carry_what_users_wrote_and_who_made_them() {
        let written =
            json!({"labels": {"tier": "back"}, "annotations": {"note": "x", LAST_APPLIED: "{}"}});
        let subsets =
            json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "sql", "port": 5432}]}]);
        let made = mirror(
            &endpoints(written, subsets),
            &service(json!({"clusterIP": "None"})),
        );
        let shown = serde_json::to_value(&made.slices[0]).expect("json");
        assert_eq!(shown["metadata"]["annotations"], json!({"note": "x"}));
        assert_eq!(
            shown["metadata"]["labels"],
            json!({"tier": "back", SERVICE: "db", MANAGED_BY: MANAGER, HEADLESS: ""})
        );
        assert_eq!(
            shown["ports"],
            json!([{"name": "sql", "port": 5432, "protocol": "TCP"}])
        );
        assert_eq!(shown["endpoints"][0]["conditions"], json!({"ready": true}));
        assert_eq!(shown["metadata"]["ownerReferences"][0]["kind"], "Endpoints");
    }
}
