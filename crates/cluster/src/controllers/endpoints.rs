//! Endpoint slices: where the pods behind a service are reached.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_cache::NAMESPACE_INDEX;
use kubewright_runtime::{
    Client, Context, Controller, Delete, Error, IgnoreNotFound, Key, Outcome, Query, Reconciler,
    Watch,
};

use super::WORKERS;
use crate::pods::adopt::{controlled_by, key};
use crate::pods::claim::controller_reference;
use crate::pods::selected::candidates;
use crate::pods::{is_finished, is_ready, is_terminating, node_name};

const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: (&str, &str) = (
    "endpointslice.kubernetes.io/managed-by",
    "endpointslice-controller.k8s.io",
);
/// The most endpoints of a slice.
const MOST: usize = 100;

/// The controller of endpoint slices.
pub(crate) fn controller() -> Controller {
    Controller::of::<Service>("endpointslice-controller")
        .owns::<EndpointSlice>()
        .watches(Watch::of::<Pod>().map(services))
        .workers(WORKERS)
        .reconciler(Slices)
}

struct Slices;

impl Reconciler<Service> for Slices {
    async fn reconcile(&self, service: Arc<Service>, cx: &Context) -> Result<Outcome, Error> {
        let client = cx.client();
        let spec = service.spec.clone().unwrap_or_default();
        let selects = spec.selector.as_ref().is_some_and(|s| !s.is_empty());
        let leaves = service.metadata.deletion_timestamp.is_some();
        if !selects || leaves || spec.type_.as_deref() == Some("ExternalName") {
            return Ok(Outcome::done());
        }
        let namespace = cx.key().namespace().unwrap_or_default();
        let asked = spec.selector.clone().unwrap_or_default();
        let pods = candidates(client, namespace, &asked).await?;
        let mut zones = BTreeMap::new();
        for node in client.list::<Node>(Query::all()).await? {
            let labels = node.metadata.labels.clone().unwrap_or_default();
            let zone = labels.get("topology.kubernetes.io/zone").cloned();
            zones.extend(node.metadata.name.clone().zip(zone));
        }
        let wanted = slices(&service, &spec, &pods, &zones);
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let there = controlled_by::<EndpointSlice>(client, uid).await?;
        let kept: BTreeSet<_> = wanted
            .iter()
            .map(|slice| slice.metadata.name.clone())
            .collect();
        for slice in wanted {
            let known = there
                .iter()
                .find(|old| old.metadata.name == slice.metadata.name);
            match known {
                None => drop(client.create(&slice).await?),
                Some(old) => {
                    let change = |told: &mut EndpointSlice| {
                        (told.endpoints, told.ports) = (slice.endpoints, slice.ports);
                    };
                    client.modify(&**old, change).await.ignore_not_found()?;
                }
            }
        }
        for old in there
            .iter()
            .filter(|old| !kept.contains(&old.metadata.name))
        {
            let deleted = client.delete(&**old, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        Ok(Outcome::done())
    }
}

/// The slices of a service: one at least, and one for every hundred pods with the same ports.
fn slices(
    service: &Service,
    spec: &ServiceSpec,
    pods: &[Arc<Pod>],
    zones: &BTreeMap<String, String>,
) -> Vec<EndpointSlice> {
    let asked = spec.selector.clone().unwrap_or_default();
    let mut groups: BTreeMap<Vec<Option<i32>>, Vec<Endpoint>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !is_finished(pod)) {
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        if asked
            .iter()
            .any(|(key, value)| labels.get(key) != Some(value))
        {
            continue;
        }
        let ports = spec
            .ports
            .iter()
            .flatten()
            .map(|port| number(port, pod))
            .collect();
        if let Some(endpoint) = endpoint(service, spec, pod, zones) {
            groups.entry(ports).or_default().push(endpoint);
        }
    }
    if groups.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    let parts = groups.iter().flat_map(|(ports, all)| {
        let parts: Vec<&[Endpoint]> = match all.is_empty() {
            true => vec![&[]],
            false => all.chunks(MOST).collect(),
        };
        parts.into_iter().map(move |part| (ports, part))
    });
    let made = parts.enumerate();
    made.map(|(at, (ports, part))| slice(service, spec, at, ports, part))
        .collect()
}

fn slice(
    service: &Service,
    spec: &ServiceSpec,
    at: usize,
    numbers: &[Option<i32>],
    endpoints: &[Endpoint],
) -> EndpointSlice {
    let name = service.metadata.name.clone().unwrap_or_default();
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE.to_owned(), name.clone());
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    if spec.cluster_ip.as_deref() == Some("None") {
        labels.insert("service.kubernetes.io/headless".to_owned(), String::new());
    }
    let told = spec.ports.iter().flatten().zip(numbers);
    let ports = told.filter_map(|(port, number)| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some((*number)?),
            protocol: Some(port.protocol.clone().unwrap_or("TCP".to_owned())),
            app_protocol: port.app_protocol.clone(),
        })
    });
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{at}")),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![controller_reference(service)]),
            ..ObjectMeta::default()
        },
        address_type: "IPv4".to_owned(),
        endpoints: Some(endpoints.to_vec()),
        ports: Some(ports.collect()),
    }
}

/// The port of a pod that a service's port leads to; none if the pod has none of that name.
fn number(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            let found = ports.find(|known| known.name.as_ref() == Some(name));
            found.map(|known| known.container_port)
        }
    }
}

fn endpoint(
    service: &Service,
    spec: &ServiceSpec,
    pod: &Pod,
    zones: &BTreeMap<String, String>,
) -> Option<Endpoint> {
    let address = pod
        .status
        .as_ref()?
        .pod_ip
        .clone()
        .filter(|ip| !ip.is_empty())?;
    let (serving, terminating) = (is_ready(pod), is_terminating(pod));
    let always = spec.publish_not_ready_addresses == Some(true);
    let told = pod.spec.as_ref();
    let near = told.is_some_and(|pod| pod.subdomain == service.metadata.name);
    let node = Some(node_name(pod)).filter(|node| !node.is_empty());
    Some(Endpoint {
        addresses: vec![address],
        conditions: Some(EndpointConditions {
            ready: Some(always || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: told.and_then(|pod| pod.hostname.clone()).filter(|_| near),
        node_name: node.map(str::to_owned),
        zone: node.and_then(|node| zones.get(node).cloned()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    })
}

/// The services that select a pod.
fn services(pod: &Pod, client: &Client) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let there = client
        .reader::<Service>()
        .by_index(NAMESPACE_INDEX, namespace);
    let labels = pod.metadata.labels.clone().unwrap_or_default();
    let selects = |service: &&Arc<Service>| {
        let asked = service
            .spec
            .as_ref()
            .and_then(|spec| spec.selector.as_ref());
        asked.is_some_and(|asked| {
            asked
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
        })
    };
    let there = there.unwrap_or_default();
    let mut keys: Vec<Key> = there
        .iter()
        .filter(selects)
        .map(|s| key(&s.metadata))
        .collect();
    keys.sort();
    keys
}
