//! Operators that say why they reconcile: in this process, or by the `/debug/causes` page of their metrics endpoint.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::time::timeout;

/// How long an operator may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest page of causes that is read.
const LARGEST: usize = 16 << 20;

/// Gives the reconciles of an operator: an object with a list for each controller, as `/debug/causes` has it.
pub type Causes = Arc<dyn Fn() -> Value + Send + Sync>;

/// The operators that the console knows.
pub(crate) struct Minds {
    operators: Vec<Operator>,
    client: Client<HttpConnector, Empty<bytes::Bytes>>,
}

pub(crate) enum Operator {
    Here { name: String, causes: Causes },
    There { address: String },
}

impl Minds {
    pub(crate) fn new(operators: Vec<Operator>) -> Self {
        Self {
            operators,
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Asks every operator for its last reconciles.
    pub(crate) async fn ask(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for operator in &self.operators {
            found.push(match operator {
                Operator::Here { name, causes } => json!({"name": name, "controllers": causes()}),
                Operator::There { address } => match self.fetch(address).await {
                    Ok(controllers) => json!({"name": address, "controllers": controllers}),
                    Err(why) => json!({"name": address, "error": why}),
                },
            });
        }
        found
    }

    async fn fetch(&self, address: &str) -> Result<Value, String> {
        let uri = format!("http://{address}/debug/causes");
        let uri = uri
            .parse()
            .map_err(|error| format!("{address} is not an address: {error}"))?;
        let answered = async {
            let response = self
                .client
                .get(uri)
                .await
                .map_err(|error| error.to_string())?;
            if !response.status().is_success() {
                return Err(format!("the operator answered {}", response.status()));
            }
            let read = Limited::new(response.into_body(), LARGEST).collect().await;
            let body = read.map_err(|error| error.to_string())?.to_bytes();
            serde_json::from_slice(&body).map_err(|error| error.to_string())
        };
        let late = |_| format!("{address} did not answer within {PATIENCE:?}");
        timeout(PATIENCE, answered).await.map_err(late)?
    }
}
