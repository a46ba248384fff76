//! A server, a proxy over it, and backends that say their name.
#![allow(dead_code)] // Each test file uses a part of it.

use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use kubewright_proxy::{LoopbackNetwork, Proxy, ProxyLimits, ProxyOptions};
use kubewright_server::{Server, ServiceNetwork};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) proxy: Proxy,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) network: LoopbackNetwork,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(|options| options).await
    }

    pub(crate) async fn with_limits(limits: ProxyLimits) -> Self {
        Self::with(|options| options.limits(limits)).await
    }

    pub(crate) async fn with(change: impl FnOnce(ProxyOptions) -> ProxyOptions) -> Self {
        let network = LoopbackNetwork::claim().expect("a network");
        let services: ServiceNetwork = network.services().to_string().parse().expect("a range");
        let server = Server::builder().service_network(services.api_port(network.api_port()));
        let server = server.start().await.expect("a server");
        let client = Client::new(server.service(), "default");
        // 127.0.0.1 belongs to everybody; an address of the network's own belongs to this test.
        let node: Ipv4Addr = network.nodes().address(1).expect("an address");
        let options = ProxyOptions::of_network(&network).node_port_addresses([node.into()]);
        let proxy = Proxy::start(client.clone(), change(options))
            .await
            .expect("a proxy");
        Self {
            proxy,
            server,
            client,
            network,
        }
    }

    /// An address of a pod.
    pub(crate) fn pod(&self, number: u32) -> Ipv4Addr {
        self.network.pods().address(number).expect("an address")
    }

    pub(crate) fn node_address(&self) -> Ipv4Addr {
        self.network.nodes().address(1).expect("an address")
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        let object = serde_json::from_value(object).expect("an object");
        let api = Api::<K>::default_namespaced(self.client.clone());
        api.create(&PostParams::default(), &object)
            .await
            .expect("created")
    }

    /// A Service with one port 8080 that is called `main`.
    pub(crate) async fn service(&self, name: &str, more: Value) -> SocketAddr {
        let mut spec = json!({"ports": [{"name": "main", "port": 8080}]});
        let (spec_fields, more) = (
            spec.as_object_mut().expect("a spec"),
            more.as_object().cloned(),
        );
        spec_fields.extend(more.unwrap_or_default());
        let service: Service = self
            .create(json!({"metadata": {"name": name}, "spec": spec}))
            .await;
        let spec = service.spec.expect("a spec");
        let ip = spec.cluster_ip.and_then(|ip| ip.parse::<Ipv4Addr>().ok());
        SocketAddr::from((ip.unwrap_or(Ipv4Addr::UNSPECIFIED), 8080))
    }

    /// Puts endpoints behind a Service: address, and `ready`, `serving`, `terminating`.
    pub(crate) async fn endpoints(&self, service: &str, endpoints: &[(SocketAddr, [bool; 3])]) {
        let of = |(address, [ready, serving, terminating]): &(SocketAddr, [bool; 3])| {
            json!({
                "addresses": [address.ip()],
                "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            })
        };
        let port = endpoints.first().map_or(1, |(address, _)| address.port());
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
            "endpoints": endpoints.iter().map(of).collect::<Vec<_>>(),
            "ports": [{"name": "main", "port": port, "protocol": "TCP"}],
        });
        let api = Api::<EndpointSlice>::default_namespaced(self.client.clone());
        let params = PatchParams::apply("test").force();
        api.patch(service, &params, &Patch::Apply(slice))
            .await
            .expect("applied");
    }

    pub(crate) async fn delete_service(&self, name: &str) {
        let api = Api::<Service>::default_namespaced(self.client.clone());
        api.delete(name, &Default::default())
            .await
            .expect("deleted");
    }

    /// Changes the spec of a Service by a merge patch.
    pub(crate) async fn change_service(&self, name: &str, spec: Value) {
        let api = Api::<Service>::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({"spec": spec}));
        api.patch(name, &PatchParams::default(), &patch)
            .await
            .expect("changed");
    }

    /// Makes the port of a slice one of UDP.
    pub(crate) async fn udp_port(&self, name: &str) {
        let api = Api::<EndpointSlice>::default_namespaced(self.client.clone());
        let patch =
            Patch::Merge(json!({"ports": [{"name": "main", "port": 9000, "protocol": "UDP"}]}));
        api.patch(name, &PatchParams::default(), &patch)
            .await
            .expect("changed");
    }

    pub(crate) async fn get_service(&self, name: &str) -> Service {
        let api = Api::<Service>::default_namespaced(self.client.clone());
        api.get(name).await.expect("a service")
    }

    /// The reasons and messages of all events of a Service.
    pub(crate) async fn events(&self) -> Vec<(String, String)> {
        let api = Api::<Event>::default_namespaced(self.client.clone());
        let events = api.list(&Default::default()).await.expect("a list").items;
        let text = |event: Event| {
            (
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default(),
            )
        };
        events.into_iter().map(text).collect()
    }
}

pub(crate) const READY: [bool; 3] = [true, true, false];
pub(crate) const DRAINING: [bool; 3] = [false, true, true];

/// Waits until something holds; prints what was seen last if it does not.
pub(crate) async fn until<T: Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let mut last = String::new();
    let waiting = async {
        loop {
            match look().await {
                Ok(found) => return found,
                Err(seen) => last = seen,
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    match timeout(LIMIT, waiting).await {
        Ok(found) => found,
        Err(_) => panic!("timed out after {LIMIT:?} waiting for {what}; last seen: {last}"),
    }
}

/// A server that answers each line with its name. It ends gracefully: it finishes what it has accepted.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    pub(crate) served: Arc<AtomicUsize>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Backend {
    pub(crate) async fn start(ip: Ipv4Addr, name: &str) -> Self {
        let listener = TcpListener::bind((ip, 9000))
            .await
            .expect("an address of one's own");
        let address = listener.local_addr().expect("an address");
        let (stop, served) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn(answer(
            listener,
            name.to_owned(),
            stop.clone(),
            served.clone(),
        ));
        Self {
            address,
            served,
            stop,
            task,
        }
    }

    /// Stops listening, and waits until everything that was accepted is answered.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        timeout(LIMIT, self.task)
            .await
            .expect("connections end")
            .expect("no panic");
    }

    /// Stops listening; what was accepted goes on.
    pub(crate) fn refuse(&self) {
        self.stop.cancel();
    }

    pub(crate) fn count(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }
}

async fn answer(
    listener: TcpListener,
    name: String,
    stop: CancellationToken,
    served: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased; // What has been accepted by the kernel is served before the socket is closed.
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (name, served) = (name.clone(), served.clone());
        if let Ok((stream, _)) = accepted {
            connections.spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while stream
                    .read_line(&mut line)
                    .await
                    .is_ok_and(|count| count > 0)
                {
                    // "wait 100 x" is answered after 100 milliseconds.
                    let pause = line
                        .strip_prefix("wait ")
                        .and_then(|rest| rest.split(' ').next());
                    if let Some(pause) = pause.and_then(|pause| pause.parse().ok()) {
                        sleep(Duration::from_millis(pause)).await;
                    }
                    served.fetch_add(1, Ordering::Relaxed);
                    let answer = format!("{name} {line}");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        break;
                    }
                    line.clear();
                }
            });
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// A connection on which lines are asked.
#[derive(Debug)]
pub(crate) struct Line(BufReader<TcpStream>);

impl Line {
    pub(crate) async fn connect(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self(BufReader::new(TcpStream::connect(address).await?)))
    }

    /// Asks one question, and gives the name of who answered.
    pub(crate) async fn ask(&mut self, question: &str) -> std::io::Result<String> {
        let asked = async {
            self.0.write_all(format!("{question}\n").as_bytes()).await?;
            let mut line = String::new();
            self.0.read_line(&mut line).await?;
            let name = line.strip_suffix(&format!(" {question}\n"));
            name.map(str::to_owned)
                .ok_or_else(|| std::io::Error::other(format!("answered {line:?}")))
        };
        timeout(LIMIT, asked)
            .await
            .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
    }
}

/// One connection, one question.
pub(crate) async fn ask(address: SocketAddr, question: &str) -> Result<String, String> {
    let mut line = Line::connect(address)
        .await
        .map_err(|error| format!("connect: {error}"))?;
    line.ask(question)
        .await
        .map_err(|error| format!("ask: {error}"))
}
