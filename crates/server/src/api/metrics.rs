//! `metrics.k8s.io`: what nodes and pods use, for `kubectl top` and autoscalers, as a metrics server serves it.
//!
//! Nothing is stored: every answer is made from the pods as they are and from what the agents of their nodes say.

use std::sync::Arc;

use http::StatusCode;
use kubewright_schema::catalog::Verb;
use kubewright_schema::selector::LabelSelector;
use serde_json::{Value, json};

use crate::agents::discovery::{GROUP, VERSION};
use crate::agents::{NodeAgents, Usage};
use crate::core::Core;
use crate::http::accept::{Accept, Protobuf};
use crate::http::path::ResourcePath;
use crate::http::respond::{self, Answer};
use crate::object::StoredLabels;
use crate::request::RequestInfo;
use crate::status::{About, ApiError};
use crate::storage::At;

/// The window over which amounts are reported to be measured.
const WINDOW: &str = "10s";

/// Answers a request for measurements.
pub(crate) fn dispatch(
    core: &Arc<Core>,
    agents: &Arc<dyn NodeAgents>,
    info: &RequestInfo<'_>,
    path: &ResourcePath,
    headers: &http::HeaderMap,
) -> Result<Answer, ApiError> {
    let accept = Accept::read(headers, &info.query, Protobuf::Metadata)?;
    let served = match (&*path.gv.version, &*path.resource, &path.subresource) {
        (VERSION, "nodes", None) if path.namespace.is_none() => Served::Nodes,
        (VERSION, "pods", None) => Served::Pods,
        _ => return Err(ApiError::no_such_resource()),
    };
    let measured = Measured { core, agents };
    let object = match (info.verb, &path.name) {
        (Some(Verb::Get), Some(name)) => measured.one(served, path.namespace.as_deref(), name)?,
        (Some(Verb::List), None) => measured.list(served, path.namespace.as_deref(), info)?,
        _ => return Err(ApiError::method_not_allowed()),
    };
    let body = object.to_string().into();
    Ok(respond::json(StatusCode::OK, accept.format, body))
}

/// Whose use is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    Nodes,
    Pods,
}

impl Served {
    fn plural(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Pods => "pods",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Nodes => "NodeMetrics",
            Self::Pods => "PodMetrics",
        }
    }
}

struct Measured<'a> {
    core: &'a Arc<Core>,
    agents: &'a Arc<dyn NodeAgents>,
}

impl Measured<'_> {
    fn one(&self, served: Served, namespace: Option<&str>, name: &str) -> Result<Value, ApiError> {
        let resource = self.core.registry.now().builtin("", "v1", served.plural());
        let about = About {
            group: GROUP,
            resource: served.plural(),
        };
        let missing = || ApiError::not_found(about, name);
        let record = resource.collection.get(&resource.key(namespace, name));
        let record = record.ok_or_else(missing)?;
        let object = resource.revive(&record)?;
        self.measure(served, &object)?.ok_or_else(missing)
    }

    fn list(
        &self,
        served: Served,
        namespace: Option<&str>,
        info: &RequestInfo<'_>,
    ) -> Result<Value, ApiError> {
        let selector = LabelSelector::parse(info.query.get("labelSelector").unwrap_or(""))
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let resource = self.core.registry.now().builtin("", "v1", served.plural());
        let snapshot = resource.collection.snapshot(At::Latest);
        let snapshot = snapshot.map_err(ApiError::internal)?;
        let mut items = Vec::new();
        for record in snapshot.range("", None) {
            let here = namespace.is_none_or(|ns| record.namespace() == Some(ns));
            if here && selector.matches(&StoredLabels(record.labels())) {
                let object = resource.revive(record)?;
                items.extend(self.measure(served, &object)?);
            }
        }
        Ok(json!({
            "kind": format!("{}List", served.kind()),
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "metadata": {},
            "items": items,
        }))
    }

    fn objects(&self, plural: &str) -> Result<Vec<Value>, ApiError> {
        let resource = self.core.registry.now().builtin("", "v1", plural);
        let snapshot = resource.collection.snapshot(At::Latest);
        let snapshot = snapshot.map_err(ApiError::internal)?;
        let records = snapshot.range("", None);
        records
            .into_iter()
            .map(|record| resource.revive(record))
            .collect()
    }

    /// What an object uses; nothing when that is not known.
    fn measure(&self, served: Served, object: &Value) -> Result<Option<Value>, ApiError> {
        let now = self.core.environment.now();
        let mut measured = json!({
            "kind": served.kind(),
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "metadata": {
                "name": object["metadata"]["name"],
                "creationTimestamp": format!("{now:.0}"),
            },
            "timestamp": format!("{now:.0}"),
            "window": WINDOW,
        });
        for field in ["namespace", "labels"] {
            if !object["metadata"][field].is_null() {
                measured["metadata"][field] = object["metadata"][field].clone();
            }
        }
        match served {
            Served::Pods => {
                let Some(usage) = self.agents.pod_usage(object) else {
                    return Ok(None);
                };
                let containers = usage.containers.iter();
                let containers =
                    containers.map(|(name, used)| json!({"name": name, "usage": amounts(*used)}));
                measured["containers"] = containers.collect();
            }
            Served::Nodes => {
                let pods = self.objects("pods")?;
                let here = pods
                    .into_iter()
                    .filter(|pod| pod["spec"]["nodeName"] == object["metadata"]["name"]);
                let Some(used) = self.agents.node_usage(object, &here.collect::<Vec<_>>()) else {
                    return Ok(None);
                };
                measured["usage"] = amounts(used);
            }
        }
        Ok(Some(measured))
    }
}

fn amounts(used: Usage) -> Value {
    json!({"cpu": format!("{}m", used.cpu), "memory": format!("{}Ki", used.memory / 1024)})
}
