//! Endpoints: the addresses behind a service in one object, at most a thousand, for those who do not read slices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod, Service,
    ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{
    Context, Controller, Delete, Error, IgnoreNotFound, Key, Outcome, Predicate, Reconciler, Watch,
};

use super::{HEADLESS, number, selects, services};
use crate::controllers::WORKERS;
use crate::pods::adopt::key;
use crate::pods::selected::candidates;
use crate::pods::{is_finished, is_ready, is_terminating, node_name};
use crate::writes::{replace, said};

/// Says that there are more addresses than these.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
/// The most addresses of an object.
const MOST: usize = 1_000;

/// The controller of Endpoints.
pub(crate) fn controller() -> Controller {
    // Only their end matters: what users make of Endpoints without a service is theirs.
    let deleted = Predicate::any().created(|_| false).updated(|_, _| false);
    let own = Watch::of::<Endpoints>().map(|there, _| vec![key(&there.metadata)]);
    Controller::of::<Service>("endpoint-controller")
        .watches(own.when(deleted))
        .watches(Watch::of::<Pod>().map(services))
        .workers(WORKERS)
        .reconciler(Legacy)
}

struct Legacy;

impl Reconciler<Service> for Legacy {
    async fn reconcile(&self, service: Arc<Service>, cx: &Context) -> Result<Outcome, Error> {
        let spec = service.spec.clone().unwrap_or_default();
        let leaves = service.metadata.deletion_timestamp.is_some();
        let external = spec.type_.as_deref() == Some("ExternalName");
        // As it is stored, no selector and an empty one are the same.
        let Some(asked) = spec.selector.as_ref().filter(|asked| !asked.is_empty()) else {
            return Ok(Outcome::done());
        };
        if leaves || external {
            return Ok(Outcome::done());
        }
        let namespace = cx.key().namespace().unwrap_or_default();
        let mut pods = candidates(cx.client(), namespace, asked).await?;
        pods.retain(|pod| selects(asked, pod));
        let wanted = endpoints(&service, &spec, &pods);
        write(cx, &service, wanted).await
    }

    /// Endpoints go with their service, whoever made them.
    async fn gone(&self, key: &Key, cx: &Context) -> Result<Outcome, Error> {
        let Some(left) = cx.client().get::<Endpoints>(key).await? else {
            return Ok(Outcome::done());
        };
        // The cache may be behind: only what the server says is gone is gone.
        let service: Option<Service> = cx.client().live().get(key).await?;
        if service.is_none() {
            let deleted = cx.client().delete(&*left, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        Ok(Outcome::done())
    }
}

async fn write(cx: &Context, service: &Service, wanted: Endpoints) -> Result<Outcome, Error> {
    let present = cx.client().get::<Endpoints>(cx.key()).await?;
    let (written, what) = match &present {
        None => (cx.client().create(&wanted).await.map(drop), "Create"),
        Some(present) => {
            let mut new = (**present).clone();
            new.subsets = wanted.subsets;
            new.metadata.labels = wanted.metadata.labels;
            let mine = wanted.metadata.annotations.is_some();
            let notes = new.metadata.annotations.get_or_insert_default();
            notes.remove(OVER_CAPACITY);
            notes.extend(mine.then(|| (OVER_CAPACITY.to_owned(), "truncated".to_owned())));
            if notes.is_empty() {
                new.metadata.annotations = None;
            }
            let written = replace(cx.client(), &**present, new).await;
            (written.map(drop), "Update")
        }
    };
    match written {
        Err(error) if error.is_namespace_terminating() || error.is_not_found() => {}
        Err(error) if error.is_conflict() || error.is_already_exists() => return Err(error.into()),
        Err(error) => {
            let (service_key, error_text) = (cx.key(), said(&error));
            let of = if present.is_none() {
                "endpoint for service"
            } else {
                "endpoint"
            };
            let message = format!(
                "Failed to {} {of} {service_key}: {error_text}",
                what.to_lowercase()
            );
            let reason = format!("FailedTo{what}Endpoint");
            cx.event(service, EventKind::Warning, &reason, message);
            return Err(error.into());
        }
        Ok(_) => {}
    }
    Ok(Outcome::done())
}

/// The Endpoints of a service that selects these pods. Addresses with the same ports are together.
fn endpoints(service: &Service, spec: &ServiceSpec, pods: &[Arc<Pod>]) -> Endpoints {
    let always = spec.publish_not_ready_addresses == Some(true);
    let headless = spec.cluster_ip.as_deref() == Some("None");
    let mut groups: BTreeMap<Vec<PortKey>, Group> = BTreeMap::new();
    for pod in pods {
        if is_finished(pod) || (is_terminating(pod) && !always) {
            continue;
        }
        let Some(address) = address(service, pod) else {
            continue;
        };
        let ports = ports(spec, pod);
        if ports.is_empty() && !(headless && spec.ports.iter().flatten().count() == 0) {
            continue;
        }
        let group = groups.entry(ports).or_default();
        if always || is_ready(pod) {
            group.ready.push(address)
        } else {
            group.not_ready.push(address)
        }
    }
    let cut = truncate(&mut groups);
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    if headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    let note = || BTreeMap::from([(OVER_CAPACITY.to_owned(), "truncated".to_owned())]);
    let subsets: Vec<EndpointSubset> = groups.into_iter().map(subset).collect();
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: (cut == Cut::Yes).then(note),
            ..ObjectMeta::default()
        },
        subsets: (!subsets.is_empty()).then_some(subsets),
    }
}

/// A port in an order: name, number, protocol, protocol of the application.
type PortKey = (Option<String>, i32, Option<String>, Option<String>);

/// Addresses with the same ports.
#[derive(Debug, Default)]
struct Group {
    ready: Vec<EndpointAddress>,
    not_ready: Vec<EndpointAddress>,
}

/// Whether addresses were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Yes,
    No,
}

fn ports(spec: &ServiceSpec, pod: &Pod) -> Vec<PortKey> {
    let ports = spec.ports.iter().flatten();
    let found: BTreeSet<PortKey> = ports
        .filter_map(|port| {
            let protocol = port.protocol.clone().unwrap_or("TCP".to_owned());
            let app = port.app_protocol.clone();
            Some((port.name.clone(), number(port, pod)?, Some(protocol), app))
        })
        .collect();
    found.into_iter().collect()
}

fn address(service: &Service, pod: &Pod) -> Option<EndpointAddress> {
    let ip = pod.status.as_ref()?.pod_ip.clone();
    let spec = pod.spec.as_ref();
    let near = spec.is_some_and(|spec| spec.subdomain == service.metadata.name);
    let node = Some(node_name(pod)).filter(|node| !node.is_empty());
    Some(EndpointAddress {
        ip: ip.filter(|ip| !ip.is_empty())?,
        hostname: spec.and_then(|spec| spec.hostname.clone()).filter(|_| near),
        node_name: node.map(str::to_owned),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
    })
}

fn subset((ports, mut group): (Vec<PortKey>, Group)) -> EndpointSubset {
    let order = |address: &EndpointAddress| {
        let of = address.target_ref.as_ref();
        (address.ip.clone(), of.and_then(|of| of.uid.clone()))
    };
    group.ready.sort_by_key(order);
    group.not_ready.sort_by_key(order);
    let ports: Vec<EndpointPort> = ports
        .into_iter()
        .map(|(name, port, protocol, app_protocol)| EndpointPort {
            app_protocol,
            name,
            port,
            protocol,
        })
        .collect();
    EndpointSubset {
        addresses: (!group.ready.is_empty()).then_some(group.ready),
        not_ready_addresses: (!group.not_ready.is_empty()).then_some(group.not_ready),
        ports: (!ports.is_empty()).then_some(ports),
    }
}

/// Leaves out what is too much, those that are not ready first, and from every group its part.
fn truncate(groups: &mut BTreeMap<Vec<PortKey>, Group>) -> Cut {
    let ready: usize = groups.values().map(|group| group.ready.len()).sum();
    let others: usize = groups.values().map(|group| group.not_ready.len()).sum();
    if ready + others <= MOST {
        return Cut::No;
    }
    let (room, total) = if ready > MOST {
        (MOST, ready)
    } else {
        (MOST - ready, others)
    };
    let mut left = room;
    for group in groups.values_mut() {
        let cut = if ready > MOST {
            group.not_ready.clear();
            &mut group.ready
        } else {
            &mut group.not_ready
        };
        let part = (cut.len() * room).div_ceil(total).min(left);
        cut.truncate(part);
        left -= cut.len();
    }
    groups.retain(|_, group| !group.ready.is_empty() || !group.not_ready.is_empty());
    Cut::Yes
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(index: usize, ready: &str, more: Value) -> Arc<Pod> {
        let mut pod = json!({
            "metadata": {"name": format!("p{index}"), "namespace": "n", "uid": format!("u{index}")},
            "spec": {"nodeName": "node", "containers": [{"name": "c",
                "ports": [{"name": "http", "containerPort": 8080}]}]},
            "status": {"phase": "Running", "podIP": format!("10.0.{}.{}", index / 250, index % 250 + 1),
                "conditions": [{"type": "Ready", "status": ready}]},
        });
        for (path, value) in more.as_object().into_iter().flatten() {
            let (part, field) = path.split_once('.').expect("part.field");
            pod[part][field] = value.clone();
        }
        Arc::new(serde_json::from_value(pod).expect("it is a pod"))
    }

    fn service(spec: Value) -> Service {
        let service = json!({"metadata": {"name": "web", "namespace": "n", "labels": {"tier": "front"}}, "spec": spec});
        serde_json::from_value(service).expect("it is a service")
    }

    /// Addresses, those that are not ready, and ports of each subset, as short texts.
    fn shown(made: &Endpoints) -> Vec<String> {
        let ips = |list: &Option<Vec<EndpointAddress>>| {
            let ips = list
                .iter()
                .flatten()
                .map(|address| match &address.hostname {
                    Some(name) => format!("{}={name}", address.ip),
                    None => address.ip.clone(),
                });
            ips.collect::<Vec<_>>().join(",")
        };
        let subsets = made.subsets.iter().flatten();
        subsets
            .map(|subset| {
                let ports = subset.ports.iter().flatten();
                let ports: Vec<_> = ports.map(|port| port.port.to_string()).collect();
                let (ready, not) = (ips(&subset.addresses), ips(&subset.not_ready_addresses));
                format!("{ready}|{not}|{}", ports.join(","))
            })
            .collect()
    }

    fn check(what: &str, spec: Value, pods: &[Arc<Pod>], expected: &[&str]) {
        let service = service(spec);
        let made = endpoints(&service, service.spec.as_ref().expect("it has one"), pods);
        assert_eq!(shown(&made), expected, "{what}");
    }

    #[test]
    fn addresses_are_those_of_pods_that_may_be_reached() {
        let port = || json!([{"port": 80, "targetPort": 8080}]);
        let plain = || json!({"ports": port()});
        let none = json!({});
        let ready = || pod(0, "True", none.clone());
        let not = || pod(1, "False", none.clone());
        let leaving = || {
            pod(
                2,
                "True",
                json!({"metadata.deletionTimestamp": "2030-01-01T00:00:00Z"}),
            )
        };
        let done = pod(3, "False", json!({"status.phase": "Succeeded"}));
        let new = pod(4, "False", json!({"status.podIP": null}));
        check("ready", plain(), &[ready()], &["10.0.0.1||8080"]);
        check(
            "not ready",
            plain(),
            &[ready(), not()],
            &["10.0.0.1|10.0.0.2|8080"],
        );
        check("only not ready", plain(), &[not()], &["|10.0.0.2|8080"]);
        check(
            "leaving, finished or without address",
            plain(),
            &[leaving(), done.clone(), new],
            &[],
        );
        let always = || json!({"ports": port(), "publishNotReadyAddresses": true});
        check(
            "published in any case",
            always(),
            &[ready(), not(), leaving(), done],
            &["10.0.0.1,10.0.0.2,10.0.0.3||8080"],
        );
        check("nobody", plain(), &[], &[]);
        let headless = json!({"clusterIP": "None"});
        check(
            "headless without ports",
            headless,
            &[ready()],
            &["10.0.0.1||"],
        );
        check(
            "not headless without ports",
            json!({"clusterIP": "10.1.1.1"}),
            &[ready()],
            &[],
        );
        let named = || json!({"ports": [{"port": 80, "targetPort": "http"}, {"name": "more", "port": 81, "targetPort": "none"}]});
        check("named port", named(), &[ready()], &["10.0.0.1||8080"]);
        let other = pod(
            5,
            "True",
            json!({"spec.containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 9090}]}]}),
        );
        check(
            "other ports, other subset",
            named(),
            &[ready(), other],
            &["10.0.0.1||8080", "10.0.0.6||9090"],
        );
        let wrong = pod(
            6,
            "True",
            json!({"spec.containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 1, "protocol": "UDP"}]}]}),
        );
        check("other protocol", named(), &[wrong], &[]);
        let host = pod(
            7,
            "True",
            json!({"spec.subdomain": "web", "spec.hostname": "first"}),
        );
        check("hostname", plain(), &[host], &["10.0.0.8=first||8080"]);
    }

    #[test]
    fn labels_are_those_of_the_service_and_say_who_manages_and_whether_it_is_headless() {
        for (spec, headless) in [
            (json!({"clusterIP": "None"}), true),
            (json!({"clusterIP": "10.1.1.1"}), false),
        ] {
            let service = service(spec);
            let made = endpoints(&service, service.spec.as_ref().expect("it has one"), &[]);
            let labels = made.metadata.labels.expect("it has labels");
            assert_eq!(labels.contains_key(HEADLESS), headless);
            assert_eq!(labels.get("tier").map(String::as_str), Some("front"));
            assert_eq!(labels.get(MANAGED_BY).map(String::as_str), Some(MANAGER));
            assert_eq!(made.metadata.annotations, None);
        }
    }

    #[test]
    fn more_than_a_thousand_are_cut_those_that_are_not_ready_first() {
        let service = service(json!({"ports": [{"port": 80, "targetPort": 8080}]}));
        for (ready, not, expected) in [
            (600, 400, (600, 400, false)),
            (600, 600, (600, 400, true)),
            (1000, 1, (1000, 0, true)),
            (1200, 300, (1000, 0, true)),
        ] {
            let of = |index: usize| {
                pod(
                    index,
                    if index < ready { "True" } else { "False" },
                    json!({}),
                )
            };
            let pods: Vec<_> = (0..ready + not).map(of).collect();
            let made = endpoints(&service, service.spec.as_ref().expect("it has one"), &pods);
            let count = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
            let subset = &made.subsets.as_deref().unwrap_or_default()[0];
            let found = (
                count(&subset.addresses),
                count(&subset.not_ready_addresses),
                made.metadata.annotations.is_some(),
            );
            assert_eq!(found, expected, "{ready} ready, {not} not");
        }
    }
}
