//! Etcd as an image of simulated nodes: it reads its flags, keeps its data on its claim, and serves the JSON gateway.

pub(crate) mod model;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, Exit, Health, ProbeKind, Program,
};
use kubewright_example_etcd::transport::{Answer, Endpoint, Transport, TransportError};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use model::{Model, Start};

/// All clusters of etcd that there are. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FakeEtcd(Arc<Mutex<State>>);

struct State {
    /// When the first process started: a model of time that needs no runtime to be made.
    began: Option<Instant>,
    /// By their token.
    clusters: BTreeMap<String, Model>,
    /// Which member runs in which pod, by `namespace/name`.
    pods: BTreeMap<String, Running>,
    /// Every request that changed something.
    calls: Vec<String>,
}

#[derive(Clone)]
struct Running {
    token: String,
    id: u64,
    uid: String,
}

/// Ends a member with its process, however that ends.
struct Alive {
    etcd: FakeEtcd,
    pod: String,
    running: Running,
}

impl Drop for Alive {
    fn drop(&mut self) {
        let mut state = self.etcd.0.lock();
        if state
            .pods
            .get(&self.pod)
            .is_some_and(|it| it.uid == self.running.uid)
        {
            state.pods.remove(&self.pod);
        }
        if let Some(model) = state.clusters.get_mut(&self.running.token) {
            model.stop(self.running.id);
        }
    }
}

impl FakeEtcd {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            began: None,
            clusters: BTreeMap::new(),
            pods: BTreeMap::new(),
            calls: Vec::new(),
        })))
    }

    /// The only cluster there is.
    pub(crate) fn model(&self) -> Model {
        let state = self.0.lock();
        state.clusters.values().next().cloned().unwrap_or_default()
    }

    /// The clusters that have a process.
    pub(crate) fn alive(&self) -> Vec<Model> {
        let state = self.0.lock();
        let alive = state.clusters.values().filter(|it| !it.running.is_empty());
        alive.cloned().collect()
    }

    /// Everything that was asked for and changed something, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.lock().calls.clone()
    }

    /// Has another member lead.
    pub(crate) fn lead(&self, name: &str) {
        let mut state = self.0.lock();
        let model = state.clusters.values_mut().next().expect("a cluster");
        let member = model.members.iter().find(|it| it.name == name);
        let id = member.expect("such a member").id;
        model.move_leader(id).expect("it leads");
    }

    fn start(&self, config: &ContainerConfig) -> Result<Alive, &'static str> {
        let flag = |name: &str| {
            let prefix = format!("--{name}=");
            let found = config.args.iter().find_map(|arg| arg.strip_prefix(&prefix));
            found.unwrap_or_default().to_owned()
        };
        let (name, token) = (flag("name"), flag("initial-cluster-token"));
        let peers = flag("initial-cluster");
        let peers = peers.split(',').filter_map(|peer| peer.split_once('='));
        let mut peers: Vec<String> = peers.map(|(name, _)| name.to_owned()).collect();
        peers.sort();
        let annotations = config.pod.metadata.annotations.clone().unwrap_or_default();
        let member = annotations.get("etcd.kubewright.dev/member-id");
        // The claim of a member and its pod have the same id: another claim of that name has another one.
        let disk = format!("{name}/{}", member.map_or("first", String::as_str));
        let image = config.container.image.clone().unwrap_or_default();
        let version = image
            .rsplit_once(":v")
            .map_or("", |(_, tag)| tag)
            .to_owned();
        let mut state = self.0.lock();
        let now = state.now();
        let start = Start {
            name: &name,
            disk: &disk,
            peers,
            state: &flag("initial-cluster-state"),
            version: &version,
            now,
        };
        let model = state.clusters.entry(token.clone()).or_default();
        let id = model.start(&start)?;
        let running = Running {
            token,
            id,
            uid: format!("{}/{}", config.id.pod.uid, config.id.run),
        };
        let pod = config.id.pod.to_string();
        state.pods.insert(pod.clone(), running.clone());
        Ok(Alive {
            etcd: self.clone(),
            pod,
            running,
        })
    }

    /// Answers a request to the JSON gateway of a member; none if nothing listens there.
    pub(crate) fn answer(&self, pod: &str, path: &str, body: &[u8]) -> Option<(u16, Value)> {
        let mut state = self.0.lock();
        let running = state.pods.get(pod)?.clone();
        let now = state.now();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let id = |name: &str| {
            let text = body[name].as_str().unwrap_or_default();
            text.parse::<u64>().unwrap_or(0)
        };
        let call = format!("{path} {body}");
        let model = state.clusters.get_mut(&running.token)?;
        let learner = model.member(running.id).is_some_and(|it| it.learner);
        let url = |name: &str| format!("http://{name}.e.default.svc:2380");
        let refused = |message: &str| {
            (
                412,
                json!({"error": message, "message": message, "code": 9}),
            )
        };
        let header = json!({
            "cluster_id": "77", "member_id": running.id.to_string(),
            "revision": model.revision.to_string(), "raft_term": model.term.to_string(),
        });
        let list = |model: &Model| -> Vec<Value> {
            let members = model.members.iter();
            let member = |it: &model::Member| {
                let mut member = json!({"ID": it.id.to_string(), "peerURLs": [url(&it.name)]});
                if it.started {
                    member["name"] = json!(it.name);
                }
                if it.learner {
                    member["isLearner"] = json!(true);
                }
                member
            };
            members.map(member).collect()
        };
        let action = path.rsplit_once('/').map_or("", |(_, action)| action);
        let changed = match action {
            "status" => {
                let version = model.running.get(&running.id)?.version.clone();
                let leader = model.leader.unwrap_or(0).to_string();
                let mut status = json!({
                    "header": header, "version": version, "leader": leader,
                    "raftTerm": model.term.to_string(),
                });
                if model.leader.is_none() {
                    status["errors"] = json!(["etcdserver: no leader"]);
                }
                return Some((200, status));
            }
            _ if learner => return Some(refused("etcdserver: rpc not supported for learner")),
            "list" => return Some((200, json!({"header": header, "members": list(model)}))),
            "defragment" => Ok(json!({})),
            "add" => {
                let peer = body["peerURLs"][0].as_str().unwrap_or_default();
                let host = peer.split_once("://").map_or("", |(_, host)| host);
                let name = host.split('.').next().unwrap_or_default();
                model.add(name).map(|id| {
                    let member =
                        json!({"ID": id.to_string(), "peerURLs": [peer], "isLearner": true});
                    json!({"header": header, "member": member})
                })
            }
            "promote" => model.promote(id("ID"), now).map(|()| json!({})),
            "remove" => model.remove(id("ID")).map(|()| json!({})),
            "transfer-leadership" if model.leader != Some(running.id) => {
                Err("etcdserver: not leader")
            }
            "transfer-leadership" => model.move_leader(id("targetID")).map(|()| json!({})),
            _ => return Some((404, json!({"message": "Not Found", "code": 5}))),
        };
        Some(match changed {
            Ok(answer) => {
                state.calls.push(call);
                (200, answer)
            }
            Err(message) => refused(message),
        })
    }
}

impl State {
    fn now(&mut self) -> i64 {
        let began = self.began.get_or_insert_with(Instant::now);
        i64::try_from(began.elapsed().as_secs()).expect("a short test")
    }
}

impl Program for FakeEtcd {
    async fn run(&self, container: ContainerConfig) -> Exit {
        if container.command.first().is_some_and(|it| it == "etcdctl") {
            self.0.lock().calls.push(container.command.join(" "));
            return Exit::code(0);
        }
        let alive = match self.start(&container) {
            Ok(alive) => alive,
            Err(why) => {
                container.log.print(why);
                return Exit::code(1);
            }
        };
        loop {
            tokio::select! {
                () = container.stopped() => return Exit::code(0),
                () = tokio::time::sleep(Duration::from_millis(200)) => {
                    let state = self.0.lock();
                    let model = state.clusters.get(&alive.running.token);
                    let listed = model.is_some_and(|it| it.member(alive.running.id).is_some());
                    if !listed {
                        return Exit::code(0);
                    }
                }
            }
        }
    }

    async fn http(
        &self,
        container: ContainerId,
        port: u16,
        request: Request<Bytes>,
    ) -> Option<Response<Bytes>> {
        if port != 2379 {
            return None;
        }
        let pod = container.pod.to_string();
        let (code, body) = self.answer(&pod, request.uri().path(), request.body())?;
        let response = Response::builder().status(code);
        response.body(Bytes::from(body.to_string())).ok()
    }

    async fn probe(&self, container: ContainerId, kind: ProbeKind) -> Health {
        let state = self.0.lock();
        let running = state.pods.get(&container.pod.to_string());
        let model = running.and_then(|it| state.clusters.get(&it.token));
        let leads = model.is_some_and(|model| model.leader.is_some());
        match kind {
            ProbeKind::Readiness if !leads => Health::Unhealthy("no leader".to_owned()),
            _ => Health::Healthy,
        }
    }
}

/// Requests through the API server's proxy of pods, which is the way to a port of a simulated node.
#[derive(Clone, Default)]
pub(crate) struct Proxy(pub(crate) Arc<OnceLock<kube::Client>>);

impl Transport for Proxy {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'a, Result<Answer, TransportError>> {
        Box::pin(async move {
            let refused = || {
                let error = std::io::ErrorKind::ConnectionRefused.into();
                TransportError::Connect(endpoint.member.clone(), error)
            };
            let client = self.0.get().ok_or_else(refused)?;
            let (namespace, pod) = (&endpoint.namespace, &endpoint.member);
            let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:2379/proxy{path}");
            let request = Request::post(uri).body(Body::from(body.to_vec()));
            let request = request.expect("a request");
            let response = client.send(request).await.map_err(|_| refused())?;
            let code = response.status().as_u16();
            let body = response.into_body().collect().await;
            let body = body.map_err(|_| refused())?.to_bytes();
            // Of the proxy itself: nothing listens there.
            if matches!(code, 404 | 500 | 502 | 503) {
                return Err(refused());
            }
            Ok(Answer { code, body })
        })
    }
}
