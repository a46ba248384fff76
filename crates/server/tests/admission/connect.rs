//! Admission of connections: `exec`, `attach`, `portforward` and `proxy`.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use kubewright_server::{
    AgentError, ContainerTarget, NodeAgents, PodTarget, PodUsage, Server, Streams, Usage,
};
use serde_json::{Value, json};
use tokio::io::DuplexStream;

use crate::hooks::{Webhook, configuration, patch as patching};
use crate::policies::policy;
use crate::server::{MUTATING, PODS, VALIDATING, create, get, post, refused};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const NODES: &str = "/api/v1/nodes";
/// What a connection that was admitted comes to without an upgrade.
const ADMITTED: &str = "Upgrade request required";

/// Nodes that run nothing and answer requests with what was asked for.
struct Repeating;

impl NodeAgents for Repeating {
    fn exec(
        &self,
        target: ContainerTarget,
        _: Vec<String>,
        _: Streams,
    ) -> BoxFuture<'static, Result<i32, AgentError>> {
        async move { Err(AgentError::NotRunning(target.container)) }.boxed()
    }

    fn attach(
        &self,
        target: ContainerTarget,
        _: Streams,
    ) -> BoxFuture<'static, Result<Option<i32>, AgentError>> {
        async move { Err(AgentError::NotRunning(target.container)) }.boxed()
    }

    fn port_forward(
        &self,
        _: PodTarget,
        port: u16,
        _: DuplexStream,
    ) -> BoxFuture<'static, Result<(), AgentError>> {
        async move { Err(AgentError::Refused(port)) }.boxed()
    }

    fn pod_http(
        &self,
        _: PodTarget,
        _: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>> {
        async move { Ok(repeated(&request)) }.boxed()
    }

    fn node_http(
        &self,
        _: String,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, AgentError>> {
        async move { Ok(repeated(&request)) }.boxed()
    }

    fn pod_usage(&self, _: &Value) -> Option<PodUsage> {
        None
    }

    fn node_usage(&self, _: &Value, _: &[Value]) -> Option<Usage> {
        None
    }
}

fn repeated(request: &Request<Bytes>) -> Response<Bytes> {
    let text = json!(request.uri().to_string()).to_string();
    Response::new(text.into())
}

/// A server with a pod `p` on a node `n`, and a Service without endpoints.
async fn server() -> Server {
    let builder = Server::builder().node_agents(Arc::new(Repeating));
    let server = builder.start().await.expect("starts");
    let node = json!({"metadata": {"name": "n"}});
    create(&server, NODES, node).await;
    let container = json!({"name": "c", "image": "i"});
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [container]}});
    create(&server, PODS, pod).await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    create(&server, SERVICES, service).await;
    server
}

fn rule(resources: &Value) -> Value {
    json!({"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": resources})
}

#[tokio::test]
async fn policy_refuses_a_command_before_it_runs() {
    let server = server().await;
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule(&json!(["pods/exec"]))]},
        "validations": [{
            "expression": "object.kind == 'PodExecOptions' && object.command[0] != 'sh' && request.operation == 'CONNECT'",
            "message": "no shells", "reason": "Forbidden",
        }],
    });
    let binding = json!({"validationActions": ["Deny"]});
    policy(&server, "Validating", "no-shells", spec, binding).await;
    let exec = |command: &str| format!("{PODS}/p/exec?stdout=true&command={command}");
    let why = "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'no-shells' with binding 'no-shells' denied request: no shells";
    assert_eq!(
        refused(&server, &exec("sh"), Value::Null).await,
        (403, why.to_owned())
    );
    let (status, answer) = get(&server, &exec("sh")).await;
    assert_eq!((status, &answer["message"]), (403, &json!(why)));
    assert_eq!(
        refused(&server, &exec("ls"), Value::Null).await,
        (400, ADMITTED.to_owned())
    );
    // It is asked before anybody looks whether the pod is there.
    let absent = format!("{PODS}/absent/exec?stdout=true&command=sh");
    assert_eq!(refused(&server, &absent, Value::Null).await.0, 403);
    let attach = format!("{PODS}/p/attach?stdout=true");
    assert_eq!(
        refused(&server, &attach, Value::Null).await,
        (400, ADMITTED.to_owned())
    );
}

/// Paths of connections with their resource, their part of it, and their options but for the version.
fn connections() -> [(String, &'static str, &'static str, Value); 6] {
    [
        (
            format!("{PODS}/p/exec?command=a&command=b&stdin=1&container=c"),
            "pods",
            "exec",
            json!({"kind": "PodExecOptions", "stdin": true, "container": "c", "command": ["a", "b"]}),
        ),
        (
            format!("{PODS}/p/attach?stdout=true&tty=false"),
            "pods",
            "attach",
            json!({"kind": "PodAttachOptions", "stdout": true}),
        ),
        (
            format!("{PODS}/p/portforward?ports=80,81"),
            "pods",
            "portforward",
            json!({"kind": "PodPortForwardOptions", "ports": [80, 81]}),
        ),
        (
            format!("{PODS}/p:80/proxy/a/b?path=c"),
            "pods",
            "proxy",
            json!({"kind": "PodProxyOptions", "path": "/a/b"}),
        ),
        (
            format!("{SERVICES}/s/proxy"),
            "services",
            "proxy",
            json!({"kind": "ServiceProxyOptions"}),
        ),
        (
            format!("{NODES}/n/proxy/metrics"),
            "nodes",
            "proxy",
            json!({"kind": "NodeProxyOptions", "path": "/metrics"}),
        ),
    ]
}

#[tokio::test]
async fn webhook_sees_the_options_of_each_connection() {
    let server = server().await;
    let hook = Webhook::admission(|request| {
        json!({"allowed": false, "status": {"message": request["kind"]["kind"], "code": 403}})
    })
    .await;
    let resources = json!(["pods/*", "services/proxy", "nodes/proxy"]);
    let hooks = json!({"clientConfig": hook.client_config(), "rules": [rule(&resources)]});
    let hooks = configuration("ValidatingWebhookConfiguration", "w", hooks);
    create(&server, VALIDATING, hooks).await;
    for (path, resource, part, expect) in connections() {
        let mut expect = expect;
        expect["apiVersion"] = json!("v1");
        let kind = expect["kind"].as_str().expect("a kind").to_owned();
        let why = format!("admission webhook \"w.example.com\" denied the request: {kind}");
        assert_eq!(
            refused(&server, &path, Value::Null).await,
            (403, why),
            "{path}"
        );
        let asked = hook.asked();
        let request = &asked.last().expect("asked")["request"];
        let gvk = json!({"group": "", "version": "v1", "kind": kind});
        let gvr = json!({"group": "", "version": "v1", "resource": resource});
        for (field, expect) in [
            ("object", &expect),
            ("oldObject", &Value::Null),
            ("options", &Value::Null),
            ("kind", &gvk),
            ("requestKind", &gvk),
            ("resource", &gvr),
            ("subResource", &json!(part)),
            ("operation", &json!("CONNECT")),
            ("dryRun", &json!(false)),
        ] {
            assert_eq!(request.get(field), Some(expect), "{field} of {path}");
        }
        assert_eq!(request.get("namespace").is_some(), resource != "nodes");
    }
    let names = hook.asked();
    let names: Vec<&Value> = names.iter().map(|r| &r["request"]["name"]).collect();
    assert_eq!(names, ["p", "p", "p", "p:80", "s", "n"]);
}

#[tokio::test]
async fn webhook_changes_what_a_connection_is_opened_with() {
    let server = server().await;
    let hook = Webhook::admission(|_| {
        patching(json!([
            {"op": "add", "path": "/path", "value": "/elsewhere"},
            {"op": "add", "path": "/metadata", "value": {"labels": {"a": "b"}}},
        ]))
    })
    .await;
    let hooks =
        json!({"clientConfig": hook.client_config(), "rules": [rule(&json!(["nodes/proxy"]))]});
    let hooks = configuration("MutatingWebhookConfiguration", "w", hooks);
    create(&server, MUTATING, hooks).await;
    let answer = get(&server, &format!("{NODES}/n/proxy/a?b=c")).await;
    assert_eq!(answer, (200, json!("/elsewhere?b=c")));
    let answer = get(&server, &format!("{PODS}/p/proxy/a?b=c")).await;
    assert_eq!(answer, (200, json!("/a?b=c")), "of pods nothing is asked");
}

#[tokio::test]
async fn selectors_of_objects_leave_connections_out() {
    let server = server().await;
    let hook = Webhook::admission(|_| json!({"allowed": false})).await;
    let narrowed = |selector: Value| {
        let hooks = json!({
            "clientConfig": hook.client_config(), "rules": [rule(&json!(["pods/exec"]))], "objectSelector": selector,
        });
        configuration("ValidatingWebhookConfiguration", "w", hooks)
    };
    let absent = json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    create(&server, VALIDATING, narrowed(absent)).await;
    let exec = format!("{PODS}/p/exec?stdout=true&command=ls");
    assert_eq!(
        refused(&server, &exec, Value::Null).await,
        (400, ADMITTED.to_owned())
    );
    assert_eq!(hook.asked().len(), 0);
}

#[tokio::test]
async fn connections_have_no_dry_run() {
    let server = server().await;
    let path = format!("{PODS}/p/exec?stdout=true&command=ls&dryRun=All");
    let (status, answer) = post(&server, &path, Value::Null).await;
    assert_eq!(
        (status, &answer["message"]),
        (400, &json!("dryRun is not supported"))
    );
}
