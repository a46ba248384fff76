//! What each of the server's duties costs: the same creates with access control, managed fields and CEL on one by one.
//!
//! All creates are made by a service account, so that roles have to be asked: an administrator is above them.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::Method;
use kubewright_bench::{Access, Connection, Protocol};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::Amount;
use crate::figure::{Figure, Value as Measured};
use crate::objects;
use crate::stopwatch::{Samples, Stopwatch};
use crate::target::{Running, Target};

const JSON: &str = "application/json";
const OFF: &[&str] = &["--authorization=always-allow", "--managed-fields=off"];
const ROLES: &[&str] = &["--authorization=rbac", "--managed-fields=off"];
const ALL: &[&str] = &["--authorization=rbac", "--managed-fields=on"];
/// Connections of the second column.
const MANY: usize = 16;
/// Creates in a second that have to be possible whatever is on.
const AIM: f64 = 5_000.0;

/// What is on, and what is created.
struct Setting {
    name: &'static str,
    arguments: &'static [&'static str],
    object: Object,
}

/// What is created: always a name and 1 KB of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    ConfigMap,
    /// A custom resource, with the rules of its schema.
    Custom(&'static str),
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "ConfigMap, everything off",
        arguments: OFF,
        object: Object::ConfigMap,
    },
    Setting {
        name: "… + RBAC",
        arguments: ROLES,
        object: Object::ConfigMap,
    },
    Setting {
        name: "… + managed fields",
        arguments: ALL,
        object: Object::ConfigMap,
    },
    Setting {
        name: "custom resource, RBAC and managed fields",
        arguments: ALL,
        object: Object::Custom("[]"),
    },
    Setting {
        name: "… + a CEL rule",
        arguments: ALL,
        object: Object::Custom(
            r#"[{"rule":"self.metadata.name.startsWith('object-') && self.data.all(k, self.data[k].size() > 100)"}]"#,
        ),
    },
];

/// One setting, measured.
pub(crate) struct Cost {
    name: &'static str,
    one: Figure,
    median: Figure,
    many: Figure,
}

/// Measures every setting on a server of its own.
pub(crate) async fn measure(target: &Target, amount: Amount) -> Result<Vec<Cost>> {
    let mut costs = Vec::new();
    for setting in SETTINGS {
        let server = target.start_with(setting.arguments).await?;
        let access = prepare(&server, setting.object).await?;
        let count = amount.of(5_000);
        let (samples, time) = creates(&access, setting.object, "one", 1, count).await?;
        let (_, crowded) = creates(&access, setting.object, "many", MANY, count).await?;
        let aim = Measured::PerSecond(AIM);
        costs.push(Cost {
            name: setting.name,
            one: Figure::rate("", count, time).aim(aim),
            median: Figure::time("", samples.median()),
            many: Figure::rate("", count, crowded).aim(aim),
        });
    }
    Ok(costs)
}

/// Makes the namespaces, the definition and a service account that may write in them.
async fn prepare(server: &Running, object: Object) -> Result<Access> {
    let mut admin = server.connect(Protocol::Http1).await?;
    for namespace in ["one", "many"] {
        objects::create_namespace(&mut admin, namespace).await?;
    }
    if let Object::Custom(rules) = object {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        post(&mut admin, path, definition(rules)).await?;
    }
    let accounts = "/api/v1/namespaces/one/serviceaccounts";
    post(
        &mut admin,
        accounts,
        r#"{"metadata":{"name":"writer"}}"#.to_owned(),
    )
    .await?;
    let bindings = "/apis/rbac.authorization.k8s.io/v1";
    post(&mut admin, &format!("{bindings}/clusterroles"), role()).await?;
    post(
        &mut admin,
        &format!("{bindings}/clusterrolebindings"),
        binding(),
    )
    .await?;
    let answer = post(
        &mut admin,
        &format!("{accounts}/writer/token"),
        "{}".to_owned(),
    )
    .await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let token = answer["status"]["token"].as_str().context("no token")?;
    Access::of_kubeconfig_with_token(&server.kubeconfig(), token)
}

/// Creates objects over a number of connections; tells how long each took, and how long all did.
async fn creates(
    access: &Access,
    object: Object,
    namespace: &str,
    connections: usize,
    count: usize,
) -> Result<(Samples, Duration)> {
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(Connection::open(access, Protocol::Http1).await?);
    }
    let path = object.path(namespace);
    let stopwatch = Stopwatch::start();
    let mut workers = JoinSet::new();
    for (first, mut connection) in opened.into_iter().enumerate() {
        let path = path.clone();
        workers.spawn(async move {
            let mut samples = Samples::default();
            for number in (first..count).step_by(connections) {
                let stopwatch = Stopwatch::start();
                let reply = connection.send(Method::POST, &path, JSON, object.body(number));
                objects::expect_success(reply.await?)?;
                samples.push(stopwatch.elapsed());
            }
            anyhow::Ok(samples)
        });
    }
    let mut samples = Samples::default();
    while let Some(done) = workers.join_next().await {
        samples.extend(done.context("a worker panicked")??);
    }
    Ok((samples, stopwatch.elapsed()))
}

impl Object {
    fn path(self, namespace: &str) -> String {
        match self {
            Self::ConfigMap => objects::path(namespace),
            Self::Custom(_) => {
                format!("/apis/bench.kubewright.dev/v1/namespaces/{namespace}/entries")
            }
        }
    }

    fn body(self, number: usize) -> Bytes {
        let body = objects::config_map(number);
        match self {
            Self::ConfigMap => body,
            Self::Custom(_) => String::from_utf8_lossy(&body)
                .replacen(r#""v1""#, r#""bench.kubewright.dev/v1""#, 1)
                .replacen("ConfigMap", "Entry", 1)
                .into(),
        }
    }
}

fn definition(rules: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"entries.bench.kubewright.dev"}},"spec":{{"group":"bench.kubewright.dev",
        "scope":"Namespaced","names":{{"plural":"entries","kind":"Entry"}},"versions":[{{"name":"v1","served":true,
        "storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","x-kubernetes-validations":{rules},
        "required":["data"],"properties":{{"data":{{"type":"object","maxProperties":4,
        "additionalProperties":{{"type":"string","maxLength":2000}}}}}}}}}}}}]}}}}"#
    )
}

fn role() -> String {
    r#"{"metadata":{"name":"writer"},"rules":[
        {"apiGroups":["","bench.kubewright.dev"],"resources":["configmaps","entries"],"verbs":["create"]}]}"#
        .to_owned()
}

fn binding() -> String {
    r#"{"metadata":{"name":"writer"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",
        "name":"writer"},"subjects":[{"kind":"ServiceAccount","name":"writer","namespace":"one"}]}"#
        .to_owned()
}

async fn post(connection: &mut Connection, path: &str, body: String) -> Result<Bytes> {
    let reply = connection.send(Method::POST, path, JSON, body).await?;
    let answer = reply.body.clone();
    objects::expect_success(reply).with_context(|| format!("POST {path}"))?;
    Ok(answer)
}

/// Prints the table.
pub(crate) fn print(costs: &[Cost]) {
    println!(
        "\n{:<44}{:>12}{:>12}{:>16}",
        "what is on", "creates", "p50", "16 connections"
    );
    for cost in costs {
        let (one, median, many) = (
            cost.one.value.to_string(),
            cost.median.value.to_string(),
            cost.many.value.to_string(),
        );
        println!("{:<44}{one:>12}{median:>12}{many:>16}", cost.name);
    }
}

/// The table as a part of the page.
pub(crate) fn markdown(costs: &[Cost]) -> String {
    let mut text = String::from(
        "\n## What each duty costs\n\nCreates by a service account with a role, over TLS and HTTP/1.1, on a fresh server \
         each; we aim at 5,000/s with\neverything on.\n\n\
         | what is on | creates, 1 connection | p50 | creates, 16 connections |\n|---|---:|---:|---:|\n",
    );
    for cost in costs {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            cost.name, cost.one.value, cost.median.value, cost.many.value
        );
    }
    text
}
