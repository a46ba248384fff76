use serde_json::{Value, json};

use super::*;
use crate::kinds::testing::{create, edit_errors, update};
use kubewright_schema::catalog::Scope;

fn service(spec: Value) -> Value {
    json!({"metadata": {"name": "gs", "namespace": "default"}, "spec": spec})
}

fn web() -> Value {
    service(json!({"selector": {"a": "b"}, "ports": [{"port": 80}]}))
}

/// What the integrator does between preparing and validating.
fn allocate(object: &mut Value) {
    if needs_cluster_ip(object) {
        set_cluster_ip(object, "10.0.0.53");
    }
    for i in node_ports_needed(object) {
        set_node_port(object, i, 30000 + i as u16);
    }
    if needs_health_check_node_port(object) {
        set_health_check_node_port(object, 31000);
    }
}

fn stored(object: Value) -> Value {
    let mut object = create("", "Service", object);
    allocate(&mut object);
    object
}

fn errors(object: Value) -> Vec<String> {
    let errors = SERVICE.validate(&stored(object), Scope::Namespaced);
    errors.iter().map(ToString::to_string).collect()
}

/// Golden entry "create service".
#[test]
fn service_gets_its_defaults() {
    let object = stored(web());
    assert_eq!(
        object["spec"],
        json!({
            "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
            "selector": {"a": "b"},
            "clusterIP": "10.0.0.53",
            "clusterIPs": ["10.0.0.53"],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster"
        })
    );
    assert_eq!(object["status"], json!({"loadBalancer": {}}));
    assert!(object["metadata"]["generation"].is_null());
    assert_eq!(errors(web()), Vec::<String>::new());
}

#[test]
fn load_balancers_get_ports_and_policies() {
    let object = stored(service(json!({
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "nodePort": 32000}],
    })));
    assert_eq!(node_ports(&object), [30000, 32000, 31000]);
    assert_eq!(object["spec"]["allocateLoadBalancerNodePorts"], true);
    assert_eq!(cluster_ip(&object), Some("10.0.0.53"));
}

#[test]
fn headless_and_external_services_need_no_address() {
    let headless = stored(service(
        json!({"clusterIP": "None", "selector": {"a": "b"}}),
    ));
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(cluster_ip(&headless), None);
    let open = stored(service(json!({"clusterIP": "None"})));
    assert_eq!(open["spec"]["ipFamilyPolicy"], "RequireDualStack");
    assert_eq!(open["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let name = stored(service(
        json!({"type": "ExternalName", "externalName": "ex.io"}),
    ));
    assert_eq!(
        name["spec"],
        json!({"type": "ExternalName", "externalName": "ex.io", "sessionAffinity": "None"})
    );
}

#[test]
fn each_broken_field_is_named() {
    for (spec, expect) in [
        (json!({}), "spec.ports: Required value"),
        (
            json!({"ports": [{"port": 0, "targetPort": 80}]}),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2}]}),
            "spec.ports[1].name: Required value",
        ),
        (
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}),
            "spec.ports[1].name: Duplicate value: \"a\"",
        ),
        (
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}),
            "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":1,\"TargetPort\":0,\"NodePort\":0}",
        ),
        (
            json!({"ports": [{"port": 1, "nodePort": 30000}]}),
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            json!({"type": "Magic", "ports": [{"port": 1}]}),
            "spec.type: Unsupported value: \"Magic\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ),
        (
            json!({"externalTrafficPolicy": "Local", "ports": [{"port": 1}]}),
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
        ),
        (
            json!({"type": "ExternalName"}),
            "spec.externalName: Required value",
        ),
        (
            json!({"type": "NodePort", "clusterIP": "None", "ports": [{"port": 1, "nodePort": 30000}]}),
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
    ] {
        assert_eq!(errors(service(spec)), [expect]);
    }
    let mut named = web();
    named["metadata"]["name"] = json!("0");
    assert!(errors(named)[0].contains("a DNS-1035 label must consist of"));
}

#[test]
fn addresses_stay() {
    assert_eq!(
        edit_errors(
            "",
            "Service",
            stored(web()),
            |new| new["spec"]["clusterIP"] = json!("10.0.0.9")
        ),
        ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.9\"]: may not change once set"]
    );
    let new = update("", "Service", &stored(web()), |new| {
        new["spec"] = json!({"selector": {"a": "b"}, "ports": [{"port": 81}]});
    });
    assert_eq!(new["spec"]["clusterIPs"], json!(["10.0.0.53"]));
    assert_eq!(new["spec"]["ipFamilyPolicy"], "SingleStack");
}

#[test]
fn changing_the_type_frees_what_it_cannot_have() {
    let node = stored(service(
        json!({"type": "NodePort", "ports": [{"port": 80}]}),
    ));
    assert_eq!(node_ports(&node), [30000]);
    let new = update("", "Service", &node, |new| {
        new["spec"]["type"] = json!("ClusterIP")
    });
    assert!(node_ports(&new).is_empty());
    assert!(new["spec"]["externalTrafficPolicy"].is_null());
    let new = update("", "Service", &node, |new| {
        new["spec"]["type"] = json!("ExternalName");
        new["spec"]["externalName"] = json!("ex.io");
    });
    assert!(new["spec"]["clusterIP"].is_null());
    let new = update("", "Service", &node, |new| {
        new["spec"]["ports"] = json!([{"port": 80}])
    });
    assert_eq!(node_ports(&new), [30000]);
}
