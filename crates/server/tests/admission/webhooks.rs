//! Webhooks over real sockets.

use serde_json::{Value, json};

use crate::hooks::{Webhook, configuration, patch as patching};
use crate::server::{
    CONFIG_MAPS, MUTATING, VALIDATING, config_map, create, delete, get, patch, pod, post, refused,
    send, server, warned,
};

const MUTATOR: &str = "MutatingWebhookConfiguration";
const VALIDATOR: &str = "ValidatingWebhookConfiguration";

fn allow(_: &Value) -> Value {
    json!({"allowed": true})
}

#[tokio::test]
async fn a_webhook_denies_in_its_own_words() {
    let server = server().await;
    let hook = Webhook::admission(|_| {
        json!({"allowed": false, "warnings": ["careful"], "status": {"message": "not today", "code": 403, "reason": "Forbidden"}})
    })
    .await;
    let hooks = configuration(
        VALIDATOR,
        "deny",
        json!({"clientConfig": hook.client_config()}),
    );
    create(&server, VALIDATING, hooks).await;
    let (status, answer) = post(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(status, 403);
    assert_eq!(
        answer["message"],
        "admission webhook \"deny.example.com\" denied the request: not today"
    );
    assert_eq!(answer["reason"], "Forbidden");
    let (_, warnings) = warned(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(warnings, ["299 - \"careful\""]);
}

#[tokio::test]
async fn a_webhook_is_asked_with_all_there_is_to_know() {
    let server = server().await;
    let hook = Webhook::admission(allow).await;
    let hooks = configuration(
        VALIDATOR,
        "look",
        json!({"clientConfig": hook.client_config()}),
    );
    create(&server, VALIDATING, hooks).await;
    create(&server, CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await;
    patch(
        &server,
        &format!("{CONFIG_MAPS}/a?fieldManager=me"),
        json!({"data": {"k": "2"}}),
    )
    .await;
    delete(&server, &format!("{CONFIG_MAPS}/a")).await;
    let asked = hook.asked();
    assert_eq!(asked.len(), 3);
    let request = &asked[0]["request"];
    assert_eq!(asked[0]["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(
        request["kind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    assert_eq!(
        request["requestResource"],
        json!({"group": "", "version": "v1", "resource": "configmaps"})
    );
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["name"], "a");
    assert_eq!(request["namespace"], "default");
    assert_eq!(request["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(request["dryRun"], false);
    assert_eq!(request["options"]["kind"], "CreateOptions");
    assert_eq!(request["object"]["data"]["k"], "1");
    assert!(request["oldObject"].is_null());
    let request = &asked[1]["request"];
    assert_eq!(request["operation"], "UPDATE");
    assert_eq!(request["options"]["fieldManager"], "me");
    assert_eq!(request["object"]["data"]["k"], "2");
    assert_eq!(request["oldObject"]["data"]["k"], "1");
    let request = &asked[2]["request"];
    assert_eq!(request["operation"], "DELETE");
    assert!(request["object"].is_null());
    assert_eq!(request["oldObject"]["data"]["k"], "2");
    assert_eq!(request["options"]["kind"], "DeleteOptions");
}

#[tokio::test]
async fn webhooks_change_objects_in_order_and_look_again() {
    let server = server().await;
    let add = |name: &'static str| {
        move |request: &Value| match &request["object"]["data"][name] {
            Value::Null => {
                patching(json!([{"op": "add", "path": format!("/data/{name}"), "value": "x"}]))
            }
            _ => json!({"allowed": true}),
        }
    };
    let (first, second) = (
        Webhook::admission(add("one")).await,
        Webhook::admission(add("two")).await,
    );
    let hook = |hook: &Webhook, policy: &str| json!({"clientConfig": hook.client_config(), "reinvocationPolicy": policy});
    create(
        &server,
        MUTATING,
        configuration(MUTATOR, "b", hook(&second, "IfNeeded")),
    )
    .await;
    create(
        &server,
        MUTATING,
        configuration(MUTATOR, "a", hook(&first, "IfNeeded")),
    )
    .await;
    let made = create(&server, CONFIG_MAPS, config_map("m", json!({"k": "v"}))).await;
    assert_eq!(made["data"], json!({"k": "v", "one": "x", "two": "x"}));
    assert_eq!(
        first.asked().len(),
        2,
        "asked again after the second changed something"
    );
    assert_eq!(second.asked().len(), 1);
    assert_eq!(second.asked()[0]["request"]["object"]["data"]["one"], "x");
    let managers = made["metadata"]["managedFields"].to_string();
    assert!(
        !managers.contains("f:one"),
        "what webhooks add belongs to nobody: {managers}"
    );
}

#[tokio::test]
async fn a_webhook_that_cannot_be_asked_fails_or_is_ignored() {
    let server = server().await;
    // A socket that is bound and does not listen: connections are refused, and nobody else takes the port.
    let bound = tokio::net::TcpSocket::new_v4().expect("a socket");
    bound
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let address = bound.local_addr().expect("an address");
    let config = json!({"url": format!("https://{address}/hook"), "caBundle": ""});
    let closed = |policy: &str| json!({"clientConfig": config, "failurePolicy": policy, "timeoutSeconds": 2});
    let hooks = configuration(VALIDATOR, "gone", closed("Ignore"));
    create(&server, VALIDATING, hooks).await;
    create(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    let change =
        json!({"webhooks": [configuration(VALIDATOR, "gone", closed("Fail"))["webhooks"][0]]});
    patch(&server, &format!("{VALIDATING}/gone"), change).await;
    let (status, message) = refused(&server, CONFIG_MAPS, config_map("b", json!({}))).await;
    assert_eq!(status, 500);
    let expect = format!(
        "Internal error occurred: failed calling webhook \"gone.example.com\": failed to call webhook: Post \"https://{address}/hook?timeout=2s\": dial tcp {address}: connect: connection refused"
    );
    assert_eq!(message, expect);
}

#[tokio::test]
async fn a_stranger_is_not_trusted() {
    let server = server().await;
    let (hook, other) = (
        Webhook::admission(allow).await,
        Webhook::admission(allow).await,
    );
    let mut config = hook.client_config();
    config["caBundle"] = json!(other.bundle);
    create(
        &server,
        VALIDATING,
        configuration(VALIDATOR, "w", json!({"clientConfig": config})),
    )
    .await;
    let (_, message) = refused(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert!(
        message.ends_with(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        ),
        "{message}"
    );
}

// The clock jumps ahead as soon as there is nothing to do but wait.
#[tokio::test(start_paused = true)]
async fn a_late_answer_is_not_waited_for() {
    let server = server().await;
    // A listener that never says a word.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = silent.local_addr().expect("an address");
    let config = json!({"url": format!("https://{address}/x"), "caBundle": ""});
    let late = json!({"clientConfig": config, "timeoutSeconds": 30});
    create(&server, VALIDATING, configuration(VALIDATOR, "w", late)).await;
    let (status, message) = refused(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(status, 500);
    assert!(
        message.ends_with(&format!(
            "Post \"https://{address}/x?timeout=30s\": context deadline exceeded"
        )),
        "{message}"
    );
}

#[tokio::test]
async fn answers_that_make_no_sense_are_failures() {
    let server = server().await;
    let hook = Webhook::raw(|_| (200, json!({"response": {"uid": "other"}}).to_string())).await;
    let hooks = configuration(
        VALIDATOR,
        "w",
        json!({"clientConfig": hook.client_config()}),
    );
    create(&server, VALIDATING, hooks).await;
    let (_, message) = refused(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert!(
        message.starts_with("Internal error occurred: failed calling webhook \"w.example.com\": received invalid webhook response: expected response.uid="),
        "{message}"
    );
}

#[tokio::test]
async fn services_lead_to_processes_of_this_machine() {
    let server = server().await;
    let hook = Webhook::admission(allow).await;
    let service = json!({"namespace": "system", "name": "hook", "path": "/p"});
    let config = json!({"service": service, "caBundle": hook.bundle});
    create(
        &server,
        VALIDATING,
        configuration(VALIDATOR, "w", json!({"clientConfig": config})),
    )
    .await;
    let (_, message) = refused(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(
        message,
        "Internal error occurred: failed calling webhook \"w.example.com\": failed to call webhook: Post \"https://hook.system.svc:443/p?timeout=10s\": service \"hook\" not found"
    );
    server
        .services()
        .insert("system", "hook", 443, hook.address);
    create(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(hook.asked().len(), 1);
}

#[tokio::test]
async fn selectors_and_conditions_narrow_a_webhook() {
    let server = server().await;
    let deny = |_: &Value| json!({"allowed": false});
    let hook = Webhook::admission(deny).await;
    let narrowed = json!({
        "clientConfig": hook.client_config(),
        "objectSelector": {"matchLabels": {"guarded": "yes"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "matchConditions": [
            {"name": "not-exempt", "expression": "!(has(object.data) && 'exempt' in object.data)"},
            {"name": "creates", "expression": "request.operation == 'CREATE'"},
        ],
    });
    create(&server, VALIDATING, configuration(VALIDATOR, "w", narrowed)).await;
    let labelled = |name: &str, data: Value| {
        let mut map = config_map(name, data);
        map["metadata"]["labels"] = json!({"guarded": "yes"});
        map
    };
    create(&server, CONFIG_MAPS, config_map("plain", json!({}))).await;
    create(
        &server,
        CONFIG_MAPS,
        labelled("exempt", json!({"exempt": "1"})),
    )
    .await;
    create(
        &server,
        "/api/v1/namespaces/kube-public/configmaps",
        labelled("elsewhere", json!({})),
    )
    .await;
    assert_eq!(hook.asked().len(), 0);
    let (status, message) = refused(&server, CONFIG_MAPS, labelled("guarded", json!({}))).await;
    assert_eq!(status, 400);
    assert_eq!(
        message,
        "admission webhook \"w.example.com\" denied the request without explanation"
    );
}

#[tokio::test]
async fn dry_runs_reach_webhooks_that_say_they_may() {
    let server = server().await;
    let hook = Webhook::admission(allow).await;
    let hooks = configuration(
        VALIDATOR,
        "w",
        json!({"clientConfig": hook.client_config()}),
    );
    create(&server, VALIDATING, hooks).await;
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    create(&server, &dry, config_map("a", json!({}))).await;
    let request = &hook.asked()[0]["request"];
    assert_eq!(request["dryRun"], true);
    assert_eq!(request["options"]["dryRun"], json!(["All"]));
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}/a")).await.0, 404);
}

#[tokio::test]
async fn parts_are_shown_as_what_they_are() {
    let server = server().await;
    let hook = Webhook::admission(|request| match request["kind"]["kind"].as_str() {
        Some("Scale") => patching(json!([{"op": "replace", "path": "/spec/replicas", "value": 7}])),
        _ => json!({"allowed": true}),
    })
    .await;
    let rules = json!([
        {"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments/scale"]},
        {"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["pods/*"]},
    ]);
    let hooks = json!({"clientConfig": hook.client_config(), "rules": rules});
    create(&server, MUTATING, configuration(MUTATOR, "w", hooks)).await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": pod("x", json!({}))["spec"],
        }},
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    create(&server, deployments, deployment).await;
    let scaled = patch(
        &server,
        &format!("{deployments}/d/scale"),
        json!({"spec": {"replicas": 3}}),
    )
    .await;
    assert_eq!(scaled["spec"]["replicas"], 7);
    let pods = "/api/v1/namespaces/default/pods";
    create(&server, pods, pod("p", json!({}))).await;
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    create(&server, &format!("{pods}/p/binding"), binding).await;
    let status = json!({"status": {"phase": "Running"}});
    patch(&server, &format!("{pods}/p/status"), status).await;
    let asked: Vec<(String, String, String)> = hook
        .asked()
        .iter()
        .map(|review| {
            let request = &review["request"];
            let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
            (
                text(&request["operation"]),
                text(&request["subResource"]),
                text(&request["kind"]["kind"]),
            )
        })
        .collect();
    let expect = [
        ("UPDATE", "scale", "Scale"),
        ("CREATE", "", "Pod"),
        ("CREATE", "binding", "Binding"),
        ("UPDATE", "status", "Pod"),
    ];
    let expect = expect.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(asked, expect);
}

#[tokio::test]
async fn configurations_of_webhooks_are_out_of_their_reach() {
    let server = server().await;
    let hook = Webhook::admission(|_| json!({"allowed": false})).await;
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let hooks = json!({"clientConfig": hook.client_config(), "rules": rules});
    create(&server, VALIDATING, configuration(VALIDATOR, "w", hooks)).await;
    assert_eq!(
        post(&server, CONFIG_MAPS, config_map("a", json!({})))
            .await
            .0,
        400
    );
    let (status, _) = delete(&server, &format!("{VALIDATING}/w")).await;
    assert_eq!(status, 200);
    create(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
}

#[tokio::test]
async fn a_patch_that_breaks_the_object_is_refused() {
    let server = server().await;
    let hook = Webhook::admission(|_| {
        patching(json!([{"op": "add", "path": "/metadata/labels", "value": {"-": "-"}}]))
    })
    .await;
    create(
        &server,
        MUTATING,
        configuration(MUTATOR, "w", json!({"clientConfig": hook.client_config()})),
    )
    .await;
    let (status, _) = post(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(status, 422);
    let (status, _) = send(
        &server,
        "GET",
        &format!("{CONFIG_MAPS}/a"),
        "application/json",
        &Value::Null,
    )
    .await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn an_equivalent_version_is_shown_as_the_rule_wants_it() {
    let server = server().await;
    let hook = Webhook::admission(allow).await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"]}]);
    let hooks = json!({"clientConfig": hook.client_config(), "rules": rules});
    create(&server, VALIDATING, configuration(VALIDATOR, "w", hooks)).await;
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "s"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}],
        },
    });
    create(
        &server,
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        scaler,
    )
    .await;
    let request = &hook.asked()[0]["request"];
    assert_eq!(request["kind"]["version"], "v1");
    assert_eq!(request["requestKind"]["version"], "v2");
    assert_eq!(request["object"]["apiVersion"], "autoscaling/v1");
    assert_eq!(
        request["object"]["spec"]["targetCPUUtilizationPercentage"],
        60
    );
}

#[tokio::test]
async fn what_a_webhook_may_not_change_stays() {
    let server = server().await;
    let hook = Webhook::admission(|_| {
        patching(json!([
            {"op": "replace", "path": "/metadata/managedFields", "value": []},
            {"op": "add", "path": "/unknown", "value": 1},
            {"op": "add", "path": "/data", "value": {"k": "hook"}},
        ]))
    })
    .await;
    let hooks = configuration(MUTATOR, "w", json!({"clientConfig": hook.client_config()}));
    create(&server, MUTATING, hooks).await;
    let made = create(&server, CONFIG_MAPS, config_map("a", json!({"k": "v"}))).await;
    assert_eq!(made["data"]["k"], "hook");
    assert!(made["unknown"].is_null());
    assert_eq!(
        made["metadata"]["managedFields"].as_array().map(Vec::len),
        Some(1)
    );
    delete(&server, &format!("{MUTATING}/w")).await;
    let hook = Webhook::admission(|_| {
        patching(json!([{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]))
    })
    .await;
    let hooks = configuration(MUTATOR, "w", json!({"clientConfig": hook.client_config()}));
    create(&server, MUTATING, hooks).await;
    assert_eq!(
        post(&server, CONFIG_MAPS, config_map("b", json!({})))
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn a_patch_of_a_deleted_object_makes_no_sense() {
    let server = server().await;
    create(&server, CONFIG_MAPS, config_map("a", json!({}))).await;
    let hook =
        Webhook::admission(|_| patching(json!([{"op": "add", "path": "/x", "value": 1}]))).await;
    let hooks = configuration(MUTATOR, "w", json!({"clientConfig": hook.client_config()}));
    create(&server, MUTATING, hooks).await;
    let (status, answer) = delete(&server, &format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(status, 500);
    assert_eq!(
        answer["message"],
        "Internal error occurred: admission webhook \"w.example.com\" attempted to modify the object, which is not supported for this operation"
    );
}

#[tokio::test]
async fn an_update_that_lost_a_race_is_admitted_anew() {
    let server = std::sync::Arc::new(server().await);
    let hook = Webhook::admission(allow).await;
    let hooks = configuration(
        VALIDATOR,
        "w",
        json!({"clientConfig": hook.client_config()}),
    );
    create(&server, CONFIG_MAPS, config_map("a", json!({"n": "0"}))).await;
    create(&server, VALIDATING, hooks).await;
    let path = format!("{CONFIG_MAPS}/a");
    let patches = (0..8).map(|i| patch(&server, &path, json!({"data": {(format!("k{i}")): "v"}})));
    futures::future::join_all(patches).await;
    let (_, found) = get(&server, &path).await;
    assert_eq!(found["data"].as_object().map(serde_json::Map::len), Some(9));
    assert!(hook.asked().len() >= 8, "{}", hook.asked().len());
    let last = hook.asked();
    let accepted = last
        .iter()
        .filter(|review| review["request"]["object"]["data"] == found["data"]);
    assert!(accepted.count() >= 1, "what is stored was shown before");
}
