//! Nodes, events, services, storage and the small core kinds.

use serde_json::{Value, json};

use super::cells;
use super::{check, now};

#[test]
fn small_core_kinds_count_what_they_hold() {
    check(
        "",
        "Namespace",
        json!({"status": {"phase": "Active"}}),
        json!(["x", "Active", "90s"]),
    );
    check(
        "",
        "Secret",
        json!({"type": "Opaque", "data": {"a": "", "b": ""}}),
        json!(["x", "Opaque", 2, "90s"]),
    );
    check(
        "",
        "ConfigMap",
        json!({"data": {"a": ""}, "binaryData": {"b": ""}}),
        json!(["x", 2, "90s"]),
    );
    check(
        "coordination.k8s.io",
        "Lease",
        json!({"spec": {"holderIdentity": "a_1"}}),
        json!(["x", "a_1", "90s"]),
    );
    check(
        "coordination.k8s.io",
        "LeaseCandidate",
        json!({"spec": {"leaseName": "l", "binaryVersion": "1.35.0", "emulationVersion": "1.34.0"}}),
        json!(["x", "l", "1.35.0", "1.34.0", "90s"]),
    );
    check(
        "",
        "ComponentStatus",
        json!({"conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]}),
        json!(["x", "Healthy", "ok", ""]),
    );
    check(
        "",
        "Status",
        json!({"status": "Failure", "reason": "NotFound", "message": "gone"}),
        json!(["Failure", "NotFound", "gone"]),
    );
}

#[test]
fn quota_separates_requests_from_limits() {
    check(
        "",
        "ResourceQuota",
        json!({"status": {
            "hard": {"pods": "10", "limits.cpu": "2", "requests.cpu": "1", "limits.memory": "1Gi"},
            "used": {"pods": "3", "limits.cpu": "500m"}}}),
        json!([
            "x",
            "pods: 3/10, requests.cpu: 0/1",
            "limits.cpu: 500m/2, limits.memory: 0/1Gi",
            "90s"
        ]),
    );
}

#[test]
fn node_shows_readiness_roles_and_addresses() {
    check(
        "",
        "Node",
        json!({
            "metadata": {"labels": {
                "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "worker",
                "node-role.kubernetes.io/": "", "kubernetes.io/os": "linux"}},
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.2"}],
                "nodeInfo": {"kubeletVersion": "v1.35.0", "osImage": "Debian", "kernelVersion": "6.1",
                    "architecture": "amd64", "containerRuntimeVersion": "containerd://2"},
            },
        }),
        json!([
            "x",
            "Ready,SchedulingDisabled",
            "control-plane,worker",
            "90s",
            "v1.35.0",
            "10.0.0.2",
            "<none>",
            "Debian",
            "6.1 (amd64)",
            "containerd://2"
        ]),
    );
    check(
        "",
        "Node",
        json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
        json!([
            "x",
            "NotReady",
            "<none>",
            "90s",
            "",
            "<none>",
            "<none>",
            "<unknown>",
            "<unknown>",
            "<unknown>"
        ]),
    );
    let row = cells("", "Node", &json!({}), now());
    assert_eq!(row[1], "Unknown");
}

#[test]
fn event_shows_when_and_how_often() {
    check(
        "",
        "Event",
        json!({
            "type": "Warning", "reason": "BackOff", "message": " restarting\n", "count": 4,
            "firstTimestamp": "2026-03-01T11:00:00Z", "lastTimestamp": "2026-03-01T11:59:00Z", "eventTime": null,
            "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{web}"},
            "source": {"component": "kubelet", "host": "node-1"},
        }),
        json!([
            "60s",
            "Warning",
            "BackOff",
            "pod/web",
            "spec.containers{web}",
            "kubelet, node-1",
            "restarting",
            "60m",
            4,
            "x"
        ]),
    );
    check(
        "",
        "Event",
        json!({
            "type": "Normal", "reason": "Synced", "message": "ok", "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": "2026-03-01T11:50:00.000000Z", "reportingComponent": "foo", "reportingInstance": "foo-1",
            "series": {"count": 9, "lastObservedTime": "2026-03-01T11:59:30.500000Z"},
            "involvedObject": {"kind": "Node"}, "source": {},
        }),
        json!([
            "29s",
            "Normal",
            "Synced",
            "node",
            "",
            "foo, foo-1",
            "ok",
            "10m",
            9,
            "x"
        ]),
    );
    check(
        "events.k8s.io",
        "Event",
        json!({
            "type": "Normal", "reason": "Synced", "note": "ok", "eventTime": "2026-03-01T11:50:00.000000Z",
            "reportingController": "foo", "regarding": {"kind": "Foo", "name": "f"},
        }),
        json!([
            "10m", "Normal", "Synced", "foo/f", "", "foo", "ok", "10m", 1, "x"
        ]),
    );
    check(
        "",
        "Event",
        json!({}),
        json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "x"]),
    );
}

/// Checks cluster address, external address and ports of a service.
#[track_caller]
fn check_service(spec: Value, ingress: Value, expect: [&str; 3]) {
    let service = json!({"spec": spec, "status": {"loadBalancer": {"ingress": ingress}}});
    let row = cells("", "Service", &service, now());
    assert_eq!(row[2..5], expect.map(Value::from), "{service}");
}

#[test]
fn service_shows_addresses_by_type() {
    let none = || json!(null);
    check_service(
        json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
            "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}),
        none(),
        ["10.0.0.1", "<none>", "80/TCP,53/UDP"],
    );
    check_service(
        json!({"type": "NodePort", "clusterIPs": ["10.0.0.1"], "externalIPs": ["1.1.1.1", "2.2.2.2"],
            "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]}),
        none(),
        ["10.0.0.1", "1.1.1.1,2.2.2.2", "80:30080/TCP"],
    );
    check_service(
        json!({"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"]}),
        none(),
        ["None", "<none>", "<none>"],
    );
    check_service(
        json!({"type": "ExternalName", "externalName": "example.com"}),
        none(),
        ["<none>", "example.com", "<none>"],
    );
    check_service(
        json!({"type": "LoadBalancer"}),
        none(),
        ["<none>", "<pending>", "<none>"],
    );
    check_service(
        json!({"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]}),
        json!([{"ip": "5.5.5.5"}, {"hostname": "a-rather-long-host-name.example.com"}, {"ip": "5.5.5.5"}]),
        [
            "<none>",
            "5.5.5.5,a-rather-long-host-name.example.com,9.9.9.9",
            "<none>",
        ],
    );
    check_service(json!({}), none(), ["<none>", "<unknown>", "<none>"]);
}

#[test]
fn endpoints_show_three_addresses() {
    let subset = |addresses: &[&str], ports: Value| {
        let addresses: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
        json!({"addresses": addresses, "ports": ports})
    };
    let web = json!([{"name": "a", "port": 80}, {"name": "b", "port": 443}]);
    for (subsets, expect) in [
        (json!(null), "<none>"),
        (
            json!([subset(&["10.0.0.1"], json!([{"port": 80}]))]),
            "10.0.0.1:80",
        ),
        (
            json!([subset(&["fd00::1"], json!([{"port": 80}]))]),
            "[fd00::1]:80",
        ),
        (
            json!([subset(&["10.0.0.1", "10.0.0.2"], json!(null))]),
            "10.0.0.1,10.0.0.2",
        ),
        (
            json!([subset(&["10.0.0.1", "10.0.0.2"], web)]),
            "10.0.0.1:80,10.0.0.2:80,10.0.0.1:443 + 1 more...",
        ),
    ] {
        check(
            "",
            "Endpoints",
            json!({"subsets": subsets}),
            json!(["x", expect, "90s"]),
        );
    }
}

#[test]
fn endpoint_slice_shows_ports_and_addresses() {
    check(
        "discovery.k8s.io",
        "EndpointSlice",
        json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "web"}, {}],
            "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.3"]},
                {"addresses": ["10.0.0.4"]}]}),
        json!([
            "x",
            "IPv4",
            "80,web,*",
            "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...",
            "90s"
        ]),
    );
    check(
        "discovery.k8s.io",
        "EndpointSlice",
        json!({"addressType": "FQDN", "ports": null, "endpoints": null}),
        json!(["x", "FQDN", "<unset>", "<unset>", "90s"]),
    );
}

#[test]
fn ingress_shows_hosts_and_ports() {
    let hosts =
        |hosts: &[&str]| -> Vec<Value> { hosts.iter().map(|host| json!({"host": host})).collect() };
    check(
        "networking.k8s.io",
        "Ingress",
        json!({"spec": {"rules": hosts(&["a", "b", "c", "d"]), "tls": [{}], "ingressClassName": "nginx"},
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
        json!([
            "x",
            "nginx",
            "a,b,c + 1 more...",
            "1.2.3.4",
            "80, 443",
            "90s"
        ]),
    );
    check(
        "networking.k8s.io",
        "Ingress",
        json!({"spec": {"rules": hosts(&["", "a"])}}),
        json!(["x", "<none>", "a", "", "80", "90s"]),
    );
    check(
        "networking.k8s.io",
        "Ingress",
        json!({"spec": {"rules": [{}]}}),
        json!(["x", "<none>", "*", "", "80", "90s"]),
    );
}

#[test]
fn network_kinds_show_what_they_refer_to() {
    let group = "networking.k8s.io";
    check(
        group,
        "IngressClass",
        json!({"spec": {"controller": "c", "parameters": {"apiGroup": "k.io", "kind": "P", "name": "n"}}}),
        json!(["x", "c", "P.k.io/n", "90s"]),
    );
    check(
        group,
        "IngressClass",
        json!({}),
        json!(["x", "", "<none>", "90s"]),
    );
    check(
        group,
        "NetworkPolicy",
        json!({"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}),
        json!(["x", "a=b", "90s"]),
    );
    check(
        group,
        "ServiceCIDR",
        json!({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/112"]}}),
        json!(["x", "10.0.0.0/24,fd00::/112", "90s"]),
    );
    check(
        group,
        "IPAddress",
        json!({"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}}),
        json!(["x", "services/default/kubernetes", "90s"]),
    );
}

#[test]
fn volumes_and_claims_shorten_access_modes() {
    check(
        "",
        "PersistentVolume",
        json!({
            "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "ns", "name": "c"},
                "storageClassName": "fast", "volumeMode": "Filesystem"},
            "status": {"phase": "Bound"},
        }),
        json!([
            "x",
            "5Gi",
            "RWO,RWX",
            "Retain",
            "Bound",
            "ns/c",
            "fast",
            "<unset>",
            "",
            "90s",
            "Filesystem"
        ]),
    );
    check(
        "",
        "PersistentVolumeClaim",
        json!({
            "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            "spec": {"volumeName": "pv", "storageClassName": "new", "volumeMode": "Block",
                "volumeAttributesClassName": "gold"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadOnlyMany", "ReadWriteOncePod"]},
        }),
        json!([
            "x", "Bound", "pv", "1Gi", "ROX,RWOP", "old", "gold", "90s", "Block"
        ]),
    );
    check(
        "",
        "PersistentVolumeClaim",
        json!({"metadata": {"deletionTimestamp": "2026-03-01T11:00:00Z"}, "spec": {"storageClassName": "s"},
            "status": {"phase": "Pending", "capacity": {"storage": "1Gi"}}}),
        json!([
            "x",
            "Terminating",
            "",
            "",
            "",
            "s",
            "<unset>",
            "90s",
            "<unset>"
        ]),
    );
}

#[test]
fn storage_kinds_fill_in_defaults() {
    let group = "storage.k8s.io";
    check(
        group,
        "StorageClass",
        json!({"metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "p"}),
        json!([
            "standard (default)",
            "p",
            "Delete",
            "Immediate",
            false,
            "90s"
        ]),
    );
    check(
        group,
        "StorageClass",
        json!({"provisioner": "p", "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": true}),
        json!(["x", "p", "Retain", "WaitForFirstConsumer", true, "90s"]),
    );
    check(
        group,
        "VolumeAttributesClass",
        json!({"driverName": "d"}),
        json!(["x", "d", "90s"]),
    );
    check(
        group,
        "VolumeAttachment",
        json!({"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
            "status": {"attached": true}}),
        json!(["x", "a", "pv", "n", true, "90s"]),
    );
    check(
        group,
        "CSINode",
        json!({"spec": {"drivers": [{}, {}]}}),
        json!(["x", 2, "90s"]),
    );
    check(
        group,
        "CSIDriver",
        json!({"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "b"}],
            "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}),
        json!([
            "x",
            true,
            false,
            false,
            "a,b",
            false,
            "Persistent,Ephemeral",
            "90s"
        ]),
    );
    check(
        group,
        "CSIDriver",
        json!({"spec": {"attachRequired": false, "podInfoOnMount": true, "storageCapacity": true,
            "requiresRepublish": true}}),
        json!(["x", false, true, true, "<unset>", true, "<none>", "90s"]),
    );
}
