//! Two candidates, one lease, and a network that delays, loses answers and refuses: at no moment do both lead.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::client::Body;
use kube::{Client, Resource};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::super::*;
use crate::environment::{Environment, VirtualClock};

const SEEDS: u64 = 500;

/// One lease with optimistic concurrency, as a server keeps it: small, so that hundreds of seeds are quick.
#[derive(Default)]
struct Stored {
    lease: Option<Lease>,
    version: u64,
}

impl Stored {
    fn serve(&mut self, method: &Method, body: &[u8]) -> (StatusCode, Vec<u8>) {
        let sent: Option<Lease> = serde_json::from_slice(body).ok();
        match (method, sent, &self.lease) {
            (&Method::GET, _, Some(lease)) => (StatusCode::OK, json(lease)),
            (&Method::POST, Some(lease), None) => self.store(lease),
            (&Method::PUT, Some(sent), Some(present)) => {
                if sent.meta().resource_version == present.meta().resource_version {
                    self.store(sent)
                } else {
                    refused(StatusCode::CONFLICT, "Conflict")
                }
            }
            (&Method::POST, ..) => refused(StatusCode::CONFLICT, "AlreadyExists"),
            _ => refused(StatusCode::NOT_FOUND, "NotFound"),
        }
    }

    fn store(&mut self, mut lease: Lease) -> (StatusCode, Vec<u8>) {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        let body = json(&lease);
        self.lease = Some(lease);
        (StatusCode::OK, body)
    }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("it serializes")
}

fn refused(status: StatusCode, reason: &str) -> (StatusCode, Vec<u8>) {
    let body = serde_json::json!({
        "kind": "Status", "status": "Failure", "reason": reason, "code": status.as_u16(),
    });
    (status, json(&body))
}

/// A network of one candidate, with random faults while there are any.
#[derive(Clone)]
struct Network {
    stored: Arc<Mutex<Stored>>,
    random: Environment,
    /// Faults in a thousand, of each sort.
    faults: Arc<Mutex<u64>>,
}

impl Network {
    fn client(&self) -> Client {
        let network = self.clone();
        let service = service_fn(move |request| network.clone().pass(request));
        Client::new(service, "default")
    }

    async fn pass(self, request: Request<Body>) -> Result<Response<Full<Bytes>>, String> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|e| e.to_string())?.to_bytes();
        self.delay().await;
        if self.strikes() {
            return Err("connection refused".into());
        }
        let (status, answer) = if self.strikes() && head.method == Method::PUT {
            refused(StatusCode::CONFLICT, "Conflict")
        } else {
            self.stored.lock().serve(&head.method, &body)
        };
        self.delay().await;
        if self.strikes() {
            return Err("connection reset: it was done, and nobody knows".into());
        }
        let mut response = Response::new(Full::new(answer.into()));
        *response.status_mut() = status;
        Ok(response)
    }

    /// Mostly quick, at times slow, now and then longer than anybody waits.
    async fn delay(&self) {
        let milliseconds = if self.strikes() {
            self.random.below(12_000)
        } else {
            self.random.below(50)
        };
        sleep(Duration::from_millis(milliseconds)).await;
    }

    fn strikes(&self) -> bool {
        let faults = *self.faults.lock();
        self.random.below(1000) < faults
    }
}

/// A candidate, started again when it loses, as a process is.
struct Candidate {
    leadership: Arc<Mutex<Option<LeaderStatus>>>,
    task: tokio::task::JoinHandle<()>,
}

fn is_leading(leadership: &Mutex<Option<LeaderStatus>>) -> bool {
    leadership
        .lock()
        .as_ref()
        .is_some_and(LeaderStatus::is_leading)
}

struct Run {
    network: Network,
    environment: Environment,
    /// How often a candidate became the leader.
    terms: Arc<Mutex<u32>>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let clock = VirtualClock::starting_at(Timestamp::UNIX_EPOCH);
        let environment = Environment::seeded(clock, seed);
        let network = Network {
            stored: Arc::default(),
            random: environment.clone(),
            faults: Arc::new(Mutex::new(environment.below(250))),
        };
        Self {
            network,
            environment,
            terms: Arc::default(),
        }
    }

    fn candidate(
        &self,
        identity: &'static str,
        own: &Arc<Mutex<Option<LeaderStatus>>>,
        other: &Arc<Mutex<Option<LeaderStatus>>>,
    ) -> Candidate {
        let (leadership, other) = (own.clone(), other.clone());
        let (network, environment) = (self.network.clone(), self.environment.clone());
        let (shown, terms) = (leadership.clone(), self.terms.clone());
        let task = tokio::spawn(async move {
            for term in 0.. {
                let options = LeaseOptions::new("default", "op", &format!("{identity}-{term}"));
                let election = Election::new(network.client(), options, environment.clone());
                let election = election.expect("the defaults fit");
                *shown.lock() = Some(election.leadership());
                // To lead begins here and nowhere else, so this is the moment that counts.
                let on_change = |leadership: &LeaderStatus| {
                    if leadership.is_leading() {
                        *terms.lock() += 1;
                        assert!(!is_leading(&other), "two lead at {:?}", Instant::now());
                    }
                };
                let _ = election.run(CancellationToken::new(), on_change).await;
            }
        });
        Candidate { leadership, task }
    }
}

/// Faults for a while, then the leader is killed and the network heals: the other one takes over in time.
async fn play(seed: u64) -> u32 {
    let run = Run::new(seed);
    let (a, b): (Arc<Mutex<_>>, Arc<Mutex<_>>) = Default::default();
    let candidates = [run.candidate("a", &a, &b), run.candidate("b", &b, &a)];
    sleep(Duration::from_secs(60 + run.environment.below(60))).await;
    *run.network.faults.lock() = 0;
    // What was delayed before arrives; then somebody leads.
    sleep(Duration::from_secs(45)).await;
    let leading = |candidate: &&Candidate| is_leading(&candidate.leadership);
    let leader = candidates.iter().find(leading).expect("somebody leads");
    leader.task.abort();
    let killed = Instant::now();
    let heir = candidates
        .iter()
        .find(|c| !Arc::ptr_eq(&c.leadership, &leader.leadership));
    let heir = heir.expect("there are two");
    while !is_leading(&heir.leadership) {
        assert!(!heir.task.is_finished(), "seed {seed}: a candidate failed");
        // Lease, one turn with its jitter before it was seen, and the requests.
        let limit = Duration::from_millis(15_000 + 4_400 + 400);
        assert!(killed.elapsed() < limit, "seed {seed}: nobody took over");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(!is_leading(&leader.leadership), "seed {seed}");
    heir.task.abort();
    *run.terms.lock()
}

#[limited::test(start_paused = true)]
async fn two_never_lead_at_once_and_the_other_takes_over() {
    let mut terms = 0;
    for seed in 0..SEEDS {
        terms += play(seed).await;
    }
    // Faults were hard enough that leadership moved, beyond the first leader and the heir of each seed.
    assert!(terms > 3 * SEEDS as u32, "{terms}");
}
