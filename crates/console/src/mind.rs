//! Operators that say why they reconcile: in this process, at an address, or behind a Service of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::Method;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::cluster::{Call, Connection, escape};
use crate::hot;
use crate::metrics;

/// How long an operator may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest page that is read from an operator.
const LARGEST: usize = 16 << 20;
/// How long the Services that were found are believed to be all.
const BELIEVED: Duration = Duration::from_secs(10);
/// The Services of metrics that `kubewright generate` writes.
const SERVICES: &str = "/api/v1/services?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dkubewright%2Ccontrol-plane%3Dcontroller-manager";

/// Gives the reconciles of an operator: an object with a list for each controller, as `/debug/causes` has it.
pub type Causes = Arc<dyn Fn() -> Value + Send + Sync>;
/// Gives the metrics of an operator in the Prometheus text format.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// An operator in this process.
#[derive(Clone)]
pub struct LocalOperator {
    name: String,
    causes: Causes,
    metrics: Option<MetricsText>,
}

impl LocalOperator {
    /// An operator by its name and its reconciles.
    pub fn new(name: impl Into<String>, causes: Causes) -> Self {
        Self {
            name: name.into(),
            causes,
            metrics: None,
        }
    }

    /// Shows its queues as well.
    #[must_use]
    pub fn metrics(mut self, metrics: MetricsText) -> Self {
        self.metrics = Some(metrics);
        self
    }
}

/// The operators that the console knows, and those that it finds.
pub(crate) struct Minds {
    operators: Vec<Operator>,
    client: Client<HttpConnector, Empty<Bytes>>,
    services: tokio::sync::Mutex<Option<(Instant, Vec<Operator>)>>,
}

#[derive(Clone)]
pub(crate) enum Operator {
    Here(LocalOperator),
    There {
        address: String,
    },
    /// A Service, asked through the API server with the user's credentials.
    Service {
        name: String,
        path: String,
    },
}

/// An operator did not answer, or not with what was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct AskError(String);

impl Minds {
    pub(crate) fn new(operators: Vec<Operator>) -> Self {
        Self {
            operators,
            client: Client::builder(TokioExecutor::new()).build_http(),
            services: tokio::sync::Mutex::default(),
        }
    }

    /// Asks every operator for its last reconciles and its queues.
    pub(crate) async fn ask(&self, connection: &Connection) -> Vec<Value> {
        let mut operators = self.operators.clone();
        operators.extend(self.found(connection).await);
        let asked = operators
            .iter()
            .map(|operator| self.ask_one(connection, operator));
        join_all(asked).await
    }

    async fn ask_one(&self, connection: &Connection, operator: &Operator) -> Value {
        let (name, causes, text) = match operator {
            Operator::Here(operator) => {
                let text = operator.metrics.as_ref().map(|render| render());
                (&operator.name, Ok((operator.causes)()), text)
            }
            Operator::There { address } => {
                let (causes, text) = tokio::join!(
                    self.fetch(address, "/debug/causes"),
                    self.fetch(address, "/metrics")
                );
                (
                    address,
                    causes.and_then(|body| parse(&body)),
                    text.ok().map(as_text),
                )
            }
            Operator::Service { name, path } => {
                let (causes, text) = tokio::join!(
                    through(connection, format!("{path}/debug/causes")),
                    through(connection, format!("{path}/metrics"))
                );
                (
                    name,
                    causes.and_then(|body| parse(&body)),
                    text.ok().map(as_text),
                )
            }
        };
        let queues = text.map_or_else(BTreeMap::new, |text| metrics::queues(&text));
        match causes {
            Ok(controllers) => json!({
                "name": name, "controllers": controllers, "queues": queues, "hot": hot::loops(&controllers),
            }),
            Err(error) => json!({"name": name, "error": error.to_string()}),
        }
    }

    /// The Services that lead to operators, looked for from time to time.
    async fn found(&self, connection: &Connection) -> Vec<Operator> {
        let mut known = self.services.lock().await;
        if let Some((at, found)) = &*known
            && at.elapsed() < BELIEVED
        {
            return found.clone();
        }
        let list = connection.json(Call::new(Method::GET, SERVICES)).await;
        let items = list.map(|list| list["items"].clone()).unwrap_or_default();
        let found: Vec<Operator> = items
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(service)
            .collect();
        *known = Some((Instant::now(), found.clone()));
        found
    }

    async fn fetch(&self, address: &str, page: &str) -> Result<Bytes, AskError> {
        let uri = format!("http://{address}{page}").parse();
        let uri = uri.map_err(|error| AskError(format!("{address} is not an address: {error}")))?;
        let answered = async {
            let response = self.client.get(uri).await;
            let response = response.map_err(|error| AskError(error.to_string()))?;
            if !response.status().is_success() {
                return Err(AskError(format!(
                    "the operator answered {}",
                    response.status()
                )));
            }
            let read = Limited::new(response.into_body(), LARGEST).collect().await;
            Ok(read
                .map_err(|error| AskError(error.to_string()))?
                .to_bytes())
        };
        let late = |_| AskError(format!("{address} did not answer within {PATIENCE:?}"));
        timeout(PATIENCE, answered).await.map_err(late)?
    }
}

async fn through(connection: &Connection, path: String) -> Result<Bytes, AskError> {
    let late = |_| AskError(format!("the operator did not answer within {PATIENCE:?}"));
    let call = Call::new(Method::GET, path).accept("*/*");
    let answered = timeout(PATIENCE, connection.call(call)).await;
    answered
        .map_err(late)?
        .map_err(|error| AskError(format!("through its Service: {error}")))
}

fn parse(body: &Bytes) -> Result<Value, AskError> {
    serde_json::from_slice(body)
        .map_err(|error| AskError(format!("its reconciles were not understood: {error}")))
}

fn as_text(body: Bytes) -> String {
    String::from_utf8_lossy(&body).into_owned()
}

/// The way to an operator through the proxy of its Service.
fn service(object: &Value) -> Option<Operator> {
    let metadata = &object["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    let port = &object["spec"]["ports"][0];
    let number = port["port"].as_u64()?;
    let secure = port["name"] == "https" || matches!(number, 443 | 8443);
    let scheme = if secure { "https" } else { "http" };
    Some(Operator::Service {
        name: format!("{namespace}/{name}"),
        path: format!(
            "/api/v1/namespaces/{}/services/{scheme}:{}:{number}/proxy",
            escape(namespace),
            escape(name)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_asked_through_the_proxy_by_their_scheme() {
        let object = |name: &str, port: u64| json!({"metadata": {"namespace": "a", "name": "m"}, "spec": {"ports": [{"name": name, "port": port}]}});
        let path = |object: &Value| match service(object) {
            Some(Operator::Service { path, .. }) => path,
            _ => String::new(),
        };
        assert_eq!(
            path(&object("https", 9000)),
            "/api/v1/namespaces/a/services/https:m:9000/proxy"
        );
        assert_eq!(
            path(&object("metrics", 8080)),
            "/api/v1/namespaces/a/services/http:m:8080/proxy"
        );
        assert_eq!(path(&json!({})), "");
    }
}
