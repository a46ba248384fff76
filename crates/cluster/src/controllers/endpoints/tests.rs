//! What the slices of a service say, for each kind of pod and service.

use serde_json::{Value, json};

use super::*;

fn service(spec: Value) -> Service {
    let mut service = json!({"metadata": {"name": "web", "namespace": "n", "uid": "s", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        service["spec"][key] = value.clone();
    }
    serde_json::from_value(service).expect("it is a service")
}

/// A pod that serves, with these fields changed.
fn pod(name: &str, changes: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "node", "containers": [{"name": "main", "ports": [{"name": "web", "containerPort": 9000}]}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    for (part, values) in changes.as_object().into_iter().flatten() {
        for (key, value) in values.as_object().into_iter().flatten() {
            pod[part][key] = value.clone();
        }
    }
    Arc::new(serde_json::from_value(pod).expect("it is a pod"))
}

fn made(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSlice> {
    let zones = BTreeMap::from([("node".to_owned(), "zone-a".to_owned())]);
    let spec = service.spec.clone().unwrap_or_default();
    slices(service, &spec, pods, &zones)
}

/// Conditions of the endpoint of one pod as ready, serving, terminating; nothing where it has none.
fn conditions(service: &Service, pod: Arc<Pod>) -> Option<[bool; 3]> {
    let slices = made(service, &[pod]);
    let endpoints = slices
        .iter()
        .flat_map(|slice| slice.endpoints.iter().flatten());
    let mut all = endpoints.filter_map(|endpoint| endpoint.conditions.clone());
    let found = all.next()?;
    Some([found.ready, found.serving, found.terminating].map(|flag| flag == Some(true)))
}

#[test]
fn a_pod_is_behind_a_service_as_it_is() {
    let not_ready = json!([{"type": "Ready", "status": "False"}]);
    let leaving = json!({"deletionTimestamp": "2030-01-01T00:00:00Z"});
    let cases = [
        ("it serves", json!({}), json!({}), Some([true, true, false])),
        (
            "it has other labels",
            json!({"metadata": {"labels": {"app": "other"}}}),
            json!({}),
            None,
        ),
        (
            "it has more labels",
            json!({"metadata": {"labels": {"app": "web", "x": "y"}}}),
            json!({}),
            Some([true, true, false]),
        ),
        (
            "it has no address",
            json!({"status": {"podIP": ""}}),
            json!({}),
            None,
        ),
        (
            "it has succeeded",
            json!({"status": {"phase": "Succeeded"}}),
            json!({}),
            None,
        ),
        (
            "it has failed",
            json!({"status": {"phase": "Failed"}}),
            json!({}),
            None,
        ),
        (
            "it is not ready",
            json!({"status": {"conditions": not_ready}}),
            json!({}),
            Some([false, false, false]),
        ),
        (
            "it is not ready and the service does not mind",
            json!({"status": {"conditions": not_ready}}),
            json!({"publishNotReadyAddresses": true}),
            Some([true, false, false]),
        ),
        (
            "it goes and still serves",
            json!({"metadata": leaving}),
            json!({}),
            Some([false, true, true]),
        ),
        (
            "it goes and serves no more",
            json!({"metadata": leaving, "status": {"conditions": not_ready}}),
            json!({}),
            Some([false, false, true]),
        ),
    ];
    for (what, changes, spec, expected) in cases {
        assert_eq!(
            conditions(&service(spec), pod("p", changes)),
            expected,
            "{what}"
        );
    }
}

#[test]
fn an_endpoint_says_where_it_is_and_whose() {
    let slices = made(&service(json!({})), &[pod("p", json!({}))]);
    let endpoint = &slices[0].endpoints.as_ref().expect("endpoints")[0];
    assert_eq!(endpoint.addresses, ["10.0.0.1"]);
    assert_eq!(endpoint.node_name.as_deref(), Some("node"));
    assert_eq!(endpoint.zone.as_deref(), Some("zone-a"));
    let target = endpoint.target_ref.as_ref().expect("a pod");
    assert_eq!(
        (
            target.kind.as_deref(),
            target.name.as_deref(),
            target.uid.as_deref()
        ),
        (Some("Pod"), Some("p"), Some("p"))
    );
    assert_eq!(endpoint.hostname, None);
}

#[test]
fn a_host_name_is_kept_where_the_pod_is_of_the_service_domain() {
    for (subdomain, expected) in [("web", Some("first")), ("other", None)] {
        let named = pod(
            "p",
            json!({"spec": {"hostname": "first", "subdomain": subdomain}}),
        );
        let slices = made(&service(json!({})), &[named]);
        let endpoint = &slices[0].endpoints.as_ref().expect("endpoints")[0];
        assert_eq!(endpoint.hostname.as_deref(), expected, "{subdomain}");
    }
}

#[test]
fn ports_lead_where_the_service_says() {
    let cases = [
        (json!({"port": 80}), Some(80)),
        (json!({"port": 80, "targetPort": 8080}), Some(8080)),
        (json!({"port": 80, "targetPort": "web"}), Some(9000)),
        (json!({"port": 80, "targetPort": "unknown"}), None),
    ];
    for (port, expected) in cases {
        let slices = made(&service(json!({"ports": [port]})), &[pod("p", json!({}))]);
        let ports = slices[0].ports.iter().flatten().map(|port| port.port);
        assert_eq!(
            ports.collect::<Vec<_>>(),
            expected.map(Some).into_iter().collect::<Vec<_>>(),
            "{port}"
        );
    }
}

#[test]
fn slices_hold_a_hundred_pods_with_the_same_ports() {
    let many = |count: usize| -> Vec<Arc<Pod>> {
        let names = (0..count).map(|n| format!("p{n}"));
        names.map(|name| pod(&name, json!({}))).collect()
    };
    for (count, expected) in [
        (0, vec![0]),
        (1, vec![1]),
        (100, vec![100]),
        (101, vec![100, 1]),
        (250, vec![100, 100, 50]),
    ] {
        let slices = made(&service(json!({})), &many(count));
        let sizes = slices
            .iter()
            .map(|slice| slice.endpoints.as_ref().map_or(0, Vec::len));
        assert_eq!(sizes.collect::<Vec<_>>(), expected, "{count} pods");
    }
    // The same name of a port is another number in other pods: those are distinguished.
    let other = json!({"spec": {"containers": [{"name": "main", "ports": [{"name": "web", "containerPort": 9001}]}]}});
    let by_name = service(json!({"ports": [{"port": 80, "targetPort": "web"}]}));
    assert_eq!(
        made(&by_name, &[pod("a", json!({})), pod("b", other)]).len(),
        2
    );
}

#[test]
fn a_slice_is_its_services() {
    for (ip, headless) in [("10.96.0.1", None), ("None", Some(""))] {
        let slices = made(&service(json!({"clusterIP": ip})), &[]);
        let meta = &slices[0].metadata;
        let label = |key: &str| {
            meta.labels
                .as_ref()
                .and_then(|all| all.get(key))
                .map(String::as_str)
        };
        assert_eq!(label("kubernetes.io/service-name"), Some("web"));
        assert_eq!(
            label("endpointslice.kubernetes.io/managed-by"),
            Some("endpointslice-controller.k8s.io")
        );
        assert_eq!(label("team"), Some("a"));
        assert_eq!(label("service.kubernetes.io/headless"), headless);
        let owner = &meta.owner_references.as_ref().expect("an owner")[0];
        assert_eq!((owner.uid.as_str(), owner.controller), ("s", Some(true)));
        assert_eq!(slices[0].address_type, "IPv4");
    }
}

/// The names of the pods in each slice, by the name of the slice.
fn contents(slices: &[EndpointSlice]) -> BTreeMap<String, Vec<String>> {
    let name = |endpoint: &Endpoint| endpoint.target_ref.clone().and_then(|target| target.name);
    let content = |slice: &EndpointSlice| {
        let endpoints = slice.endpoints.iter().flatten();
        let names = endpoints.filter_map(name).collect();
        (slice.metadata.name.clone().unwrap_or_default(), names)
    };
    slices.iter().map(content).collect()
}

/// What the slices of a service are after a placement, and how many were written.
fn placed(existing: &[EndpointSlice], wanted: Vec<EndpointSlice>) -> (Vec<EndpointSlice>, usize) {
    let shared = existing.iter().cloned().map(Arc::new).collect();
    let placement = place(shared, wanted);
    let writes = placement.create.len() + placement.update.len() + placement.delete.len();
    let mut slices = existing.to_vec();
    slices.retain(|slice| !placement.delete.iter().any(|gone| **gone == *slice));
    for (old, new) in placement.update {
        slices.retain(|slice| *slice != *old);
        slices.push(new);
    }
    slices.extend(placement.create);
    slices.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    (slices, writes)
}

/// Mirrors `reconciler_test.go: TestReconcileManyPods`, `TestReconcileEndpointSlicesSomePreexisting` and
/// `TestReconcileEndpointSlicesRecycling`.
#[test]
fn endpoint_stays_in_its_slice_while_others_come_and_go() {
    let web = service(json!({}));
    let many = |numbers: std::ops::Range<usize>| -> Vec<Arc<Pod>> {
        numbers
            .map(|n| pod(&format!("p{n:03}"), json!({})))
            .collect()
    };
    let (full, writes) = placed(&[], made(&web, &many(0..150)));
    assert_eq!(writes, 2);
    let before = contents(&full);
    // Nothing is written when nothing has changed, in whatever order pods are listed.
    let mut turned = many(0..150);
    turned.reverse();
    assert_eq!(placed(&full, made(&web, &turned)).1, 0);
    // The first pod goes: its slice alone is written, and the others keep their places.
    let (less, writes) = placed(&full, made(&web, &many(1..150)));
    assert_eq!(writes, 1);
    let after = contents(&less);
    assert_eq!(after["web-0"], before["web-0"][1..]);
    assert_eq!(after["web-1"], before["web-1"]);
    // One comes: it gets the place in the fullest slice that has room for it.
    let (more, writes) = placed(&less, made(&web, &many(1..151)));
    assert_eq!((writes, contents(&more)["web-0"].len()), (1, 100));
    // All go: one slice is left, without endpoints and without ports.
    let (none, _) = placed(&more, made(&web, &[]));
    assert_eq!(
        contents(&none),
        BTreeMap::from([("web-0".to_owned(), Vec::new())])
    );
    assert_eq!(none[0].ports.as_deref(), Some(&[][..]));
    assert_eq!(placed(&none, made(&web, &[])).1, 0);
    // Other ports: the slice is used again rather than deleted.
    let ported = service(json!({"ports": [{"name": "http", "port": 80, "targetPort": 9090}]}));
    let (one, _) = placed(&[], made(&web, &many(0..1)));
    let (other, writes) = placed(&one, made(&ported, &many(0..1)));
    assert_eq!((writes, other.len()), (1, 1));
    assert_eq!(other[0].metadata.name.as_deref(), Some("web-0"));
}

/// Mirrors `trafficdist_test.go: TestReconcileHints_trafficDistribution_is_PreferClose` and its neighbours.
#[test]
fn traffic_distribution_asks_for_hints() {
    for (distribution, ready, expected) in [
        (json!(null), "True", json!(null)),
        (json!("Unknown"), "True", json!(null)),
        (
            json!("PreferClose"),
            "True",
            json!({"forZones": [{"name": "zone-a"}]}),
        ),
        (
            json!("PreferSameZone"),
            "True",
            json!({"forZones": [{"name": "zone-a"}]}),
        ),
        (
            json!("PreferSameNode"),
            "True",
            json!({"forZones": [{"name": "zone-a"}], "forNodes": [{"name": "node"}]}),
        ),
        (json!("PreferClose"), "False", json!(null)),
    ] {
        let service = service(json!({"trafficDistribution": distribution}));
        let conditions = json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let slices = made(&service, &[pod("p", conditions)]);
        let endpoint = serde_json::to_value(&slices[0].endpoints).expect("json")[0].clone();
        assert_eq!(endpoint["hints"], expected, "{distribution} {ready}");
    }
}
