//! Writes keys all the time, remembers which ones etcd acknowledged, and looks whether they are all there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use kubewright_example_etcd::transport::{Endpoint, Network, Transport};
use kubewright_lane::Pods;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How many keys an answer has at most.
const PAGE: usize = 1000;

/// A client of a cluster that tries its members in turn.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) cluster: String,
    pub(crate) pods: Pods,
    pub(crate) tls: Arc<rustls::ClientConfig>,
}

/// What a writer knows.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The keys that etcd acknowledged.
    pub(crate) acknowledged: Vec<u64>,
    /// How often there was no answer, or a refusal: nobody knows what became of those.
    pub(crate) failed: u64,
    /// The longest time without an acknowledgement since this was last reset.
    pub(crate) longest: Duration,
    next: u64,
}

impl Written {
    /// Notes what became of a key: acknowledged so long after the one before, or not.
    fn note(&mut self, number: u64, after: Option<Duration>) {
        match after {
            Some(after) => {
                self.acknowledged.push(number);
                self.longest = self.longest.max(after);
            }
            None => self.failed += 1,
        }
    }
}

impl Client {
    /// Where the members are whose processes run.
    pub(crate) fn endpoints(&self) -> Vec<Endpoint> {
        let running = self.pods.running();
        let members = running.pids.keys();
        let members = members.filter(|name| {
            let member = name.rsplit_once('-');
            member.is_some_and(|(cluster, _)| cluster == self.cluster)
        });
        let endpoint = |name: &String| Endpoint {
            member: name.clone(),
            namespace: "default".to_owned(),
            address: running.addresses.get(name).cloned().unwrap_or_default(),
            host: format!("{name}.{}.default.svc", self.cluster),
            tls: Some(self.tls.clone()),
        };
        members.map(endpoint).collect()
    }

    async fn post(&self, endpoint: &Endpoint, path: &'static str, body: &Value) -> Option<Value> {
        let body = Bytes::from(body.to_string());
        let answer = Network.post(endpoint, path, body).await.ok()?;
        let is_ok = answer.code == 200;
        let value = serde_json::from_slice(&answer.body).ok();
        value.filter(|_| is_ok)
    }

    /// Writes keys until it is dropped.
    pub(crate) async fn write(self, written: Arc<Mutex<Written>>) {
        let mut last = Instant::now();
        for turn in 0.. {
            let endpoints = self.endpoints();
            let number = {
                let mut written = written.lock();
                written.next += 1;
                written.next
            };
            let body = json!({"key": encode(&key(number)), "value": encode(&number.to_string())});
            let acknowledged = match endpoints.get(turn % endpoints.len().max(1)) {
                Some(endpoint) => self.post(endpoint, "/v3/kv/put", &body).await.is_some(),
                None => false,
            };
            written
                .lock()
                .note(number, acknowledged.then(|| last.elapsed()));
            if acknowledged {
                last = Instant::now();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// All keys with their values, by a linearizable read.
    pub(crate) async fn read_all(&self) -> Option<BTreeMap<String, String>> {
        let endpoints = self.endpoints();
        let mut all = BTreeMap::new();
        let mut from = "k".to_owned();
        loop {
            let body = json!({
                "key": encode(&from), "range_end": encode("l"), "limit": PAGE.to_string(),
            });
            let mut answer = None;
            for endpoint in &endpoints {
                answer = self.post(endpoint, "/v3/kv/range", &body).await;
                if answer.is_some() {
                    break;
                }
            }
            let answer = answer?;
            let found = answer["kvs"].as_array().cloned().unwrap_or_default();
            for pair in &found {
                let text = |name: &str| decode(pair[name].as_str().unwrap_or_default());
                all.insert(text("key"), text("value"));
            }
            if found.len() < PAGE {
                return Some(all);
            }
            from = format!("{}\0", all.keys().next_back()?);
        }
    }
}

/// How many of these keys are not there, or have another value.
pub(crate) fn lost(acknowledged: &[u64], found: &BTreeMap<String, String>) -> usize {
    let is_lost = |number: &&u64| found.get(&key(**number)) != Some(&number.to_string());
    acknowledged.iter().filter(is_lost).count()
}

fn key(number: u64) -> String {
    format!("k{number:08}")
}

fn encode(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn decode(text: &str) -> String {
    let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
