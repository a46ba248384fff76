//! Endpoint slices: where the pods behind a service are reached. [`legacy`] says the same in the older way, [`mirror`]
//! makes slices of what users say themselves.

mod hints;
pub(crate) mod legacy;
pub(crate) mod mirror;
mod placement;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{
    Client, ClientError, Context, Controller, Delete, Error, IgnoreNotFound, Key, Outcome,
    Predicate, Reconciler, Watch,
};

use self::hints::Hints;
use self::placement::place;
use super::WORKERS;
use crate::pods::adopt::{controlled_by, key};
use crate::pods::claim::controller_reference;
use crate::pods::selected::candidates;
use crate::pods::selecting::selecting;
use crate::pods::{is_finished, is_ready, is_terminating, label, node_name};
use crate::writes::replace;

const SERVICE: &str = "kubernetes.io/service-name";
/// Marks what belongs to a service without an address of its own.
const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Says where a node is.
const ZONE: &str = "topology.kubernetes.io/zone";
/// The most endpoints of a slice.
const MOST: usize = 100;

/// The controller of endpoint slices.
pub(crate) fn controller() -> Controller {
    Controller::of::<Service>("endpointslice-controller")
        .owns::<EndpointSlice>()
        .watches(Watch::of::<Pod>().map(services))
        .watches(
            Watch::of::<Node>()
                .when(Predicate::labels_changed())
                .map(services_on),
        )
        .workers(WORKERS)
        .reconciler(Slices)
}

/// The services with endpoints on a node that may be in another zone than they say.
fn services_on(node: &Node, client: &Client) -> Vec<Key> {
    let (name, zone) = (node.metadata.name.as_ref(), label(&node.metadata, ZONE));
    let moved = |slice: &&Arc<EndpointSlice>| {
        let mut endpoints = slice.endpoints.iter().flatten();
        endpoints.any(|one| one.node_name.as_ref() == name && one.zone.as_deref() != zone)
    };
    let slices = client.reader::<EndpointSlice>().list();
    let services = slices.iter().filter(moved).filter_map(|slice| {
        let namespace = slice.metadata.namespace.as_deref()?;
        Some(Key::new(namespace, label(&slice.metadata, SERVICE)?))
    });
    let services: BTreeSet<Key> = services.collect();
    services.into_iter().collect()
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
        let zones = zones(client, &pods).await?;
        let wanted = slices(&service, &spec, &pods, &zones);
        put(client, &*service, wanted).await?;
        Ok(Outcome::done())
    }
}

/// The zones of the nodes that pods are on.
async fn zones(
    client: &Client,
    pods: &[Arc<Pod>],
) -> Result<BTreeMap<String, String>, ClientError> {
    let nodes: BTreeSet<&str> = pods.iter().map(|pod| node_name(pod)).collect();
    let mut zones = BTreeMap::new();
    for name in nodes {
        let node = if name.is_empty() {
            None
        } else {
            client.get::<Node>(&Key::cluster(name)).await?
        };
        let zone = node.and_then(|node| label(&node.metadata, ZONE).map(str::to_owned));
        zones.extend(zone.map(|zone| (name.to_owned(), zone)));
    }
    Ok(zones)
}

/// Makes the slices that an object controls what they should be.
async fn put<K: TypedObject>(
    client: &Client,
    owner: &K,
    wanted: Vec<EndpointSlice>,
) -> Result<(), ClientError> {
    let uid = owner.meta().uid.as_deref().unwrap_or_default();
    let mut there = controlled_by::<EndpointSlice>(client, uid).await?;
    there.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    let placement = place(there, wanted);
    for slice in placement.create {
        match client.create(&slice).await {
            // Nothing can be created there any more, and nobody looks.
            Err(error) if error.is_namespace_terminating() => return Ok(()),
            written => drop(written?),
        }
    }
    for (old, new) in placement.update {
        replace(client, &*old, new).await.ignore_not_found()?;
    }
    for old in placement.delete {
        let deleted = client.delete(&*old, Delete::background()).await;
        deleted.ignore_not_found()?;
    }
    Ok(())
}

/// The slices of a service: one at least, and one for every hundred pods with the same ports.
fn slices(
    service: &Service,
    spec: &ServiceSpec,
    pods: &[Arc<Pod>],
    zones: &BTreeMap<String, String>,
) -> Vec<EndpointSlice> {
    let (asked, hints) = (
        spec.selector.clone().unwrap_or_default(),
        Hints::of(service),
    );
    let mut groups: BTreeMap<Vec<Option<i32>>, Vec<Endpoint>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !is_finished(pod)) {
        if !selects(&asked, pod) {
            continue;
        }
        let ports = spec
            .ports
            .iter()
            .flatten()
            .map(|port| number(port, pod))
            .collect();
        if let Some(mut endpoint) = endpoint(service, spec, pod, zones) {
            endpoint.hints = hints.hint(&endpoint);
            groups.entry(ports).or_default().push(endpoint);
        }
    }
    if groups.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    let parts = groups.iter().flat_map(|(ports, all)| {
        let parts: Vec<&[Endpoint]> = if all.is_empty() {
            vec![&[]]
        } else {
            all.chunks(MOST).collect()
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
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    if spec.cluster_ip.as_deref() == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    let numbered = spec.ports.iter().flatten().zip(numbers);
    let ports = numbered.filter_map(|(port, number)| {
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
            let found = ports.find(|known| {
                let protocol = |given: &Option<String>| given.clone().unwrap_or("TCP".to_owned());
                known.name.as_ref() == Some(name)
                    && protocol(&known.protocol) == protocol(&port.protocol)
            });
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
    let pod_spec = pod.spec.as_ref();
    let near = pod_spec.is_some_and(|pod| pod.subdomain == service.metadata.name);
    let node = Some(node_name(pod)).filter(|node| !node.is_empty());
    Some(Endpoint {
        addresses: vec![address],
        conditions: Some(EndpointConditions {
            ready: Some(always || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: pod_spec
            .and_then(|pod| pod.hostname.clone())
            .filter(|_| near),
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

fn selects(asked: &BTreeMap<String, String>, pod: &Pod) -> bool {
    let has = |key: &String, value: &String| label(&pod.metadata, key) == Some(value);
    asked.iter().all(|(key, value)| has(key, value))
}

/// The services that select a pod.
fn services(pod: &Pod, client: &Client) -> Vec<Key> {
    let there = selecting::<Service>(client, pod, |service| {
        service.spec.as_ref()?.selector.as_ref()
    });
    let selects = |service: &&Arc<Service>| {
        let spec = service.spec.as_ref();
        let asked = spec.and_then(|spec| spec.selector.as_ref());
        asked.is_some_and(|asked| selects(asked, pod))
    };
    let mut keys: Vec<Key> = there
        .iter()
        .filter(selects)
        .map(|s| key(&s.metadata))
        .collect();
    keys.sort();
    keys
}
