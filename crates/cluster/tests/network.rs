//! A cluster in a network of this machine: addresses of pods, nodes and Services are the loopback device's, and connect.

use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::Api;
use kube::api::PostParams;
use kubewright_cluster::{Cluster, LoopbackNetwork};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(30);

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    let waiting = async {
        loop {
            match look().await {
                Ok(found) => return found,
                Err(seen) => last = seen,
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    match timeout(LIMIT, waiting).await {
        Ok(found) => found,
        Err(_) => panic!("timed out after {LIMIT:?} waiting for {what}; last seen: {last}"),
    }
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created")
}

async fn read(address: SocketAddr) -> std::io::Result<String> {
    let mut text = String::new();
    let mut stream = TcpStream::connect(address).await?;
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_services_and_nodes_are_on_loopback() {
    let network = LoopbackNetwork::claim().expect("a network");
    let cluster = Cluster::builder()
        .network(network.clone())
        .start()
        .await
        .expect("a cluster");
    let (pods, services) = (
        Api::<Pod>::default_namespaced(cluster.client()),
        Api::<Service>::default_namespaced(cluster.client()),
    );
    let container = json!({"name": "main", "image": "web:1", "ports": [{"name": "http", "containerPort": 8080}]});
    let pod = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"containers": [container]}});
    create(&pods, pod).await;
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 8000, "targetPort": "http"}]});
    let service = create(
        &services,
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let address: Ipv4Addr = until("the pod's address", async || {
        let status = pods
            .get("web")
            .await
            .map_err(|error| error.to_string())?
            .status;
        let ip = status
            .as_ref()
            .and_then(|status| status.pod_ip.as_ref()?.parse().ok());
        ip.ok_or(format!("{status:?}"))
    })
    .await;
    assert!(network.pods().contains(address), "{address}");
    // The pod is simulated; this is the process that it would be.
    let listener = TcpListener::bind((address, 8080))
        .await
        .expect("the address is this machine's");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"hello").await;
        }
    });
    let ip = service
        .spec
        .and_then(|spec| spec.cluster_ip)
        .expect("a cluster IP");
    let ip: Ipv4Addr = ip.parse().expect("an address");
    assert!(network.services().contains(ip), "{ip}");
    let answer = until("an answer", async || {
        read((ip, 8000).into())
            .await
            .map_err(|error| error.to_string())
    });
    assert_eq!(answer.await, "hello");
    let nodes = Api::<Node>::all(cluster.client())
        .list(&Default::default())
        .await
        .expect("a list");
    let addresses = nodes.items[0]
        .status
        .clone()
        .and_then(|status| status.addresses)
        .unwrap_or_default();
    let internal = addresses
        .iter()
        .find(|address| address.type_ == "InternalIP")
        .expect("an address");
    assert!(
        network
            .nodes()
            .contains(internal.address.parse().expect("an address"))
    );
    let dns = Api::<Service>::namespaced(cluster.client(), "kube-system")
        .get("kube-dns")
        .await
        .expect("a service");
    assert_eq!(
        dns.spec.and_then(|spec| spec.cluster_ip),
        Some(network.dns_address().ip().to_string())
    );
    cluster.stop().await;
    until("closed sockets", async || {
        match TcpListener::bind((ip, 8000)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

#[tokio::test]
async fn a_fork_has_the_addresses_and_no_proxy() {
    let network = LoopbackNetwork::claim().expect("a network");
    let cluster = Cluster::builder()
        .network(network)
        .start()
        .await
        .expect("a cluster");
    let fork = cluster.fork().await.expect("a fork");
    assert!(fork.network().is_none());
    let services = Api::<Service>::default_namespaced(fork.client());
    let spec = json!({"ports": [{"port": 8000}]});
    let service = create(
        &services,
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let ip = service
        .spec
        .and_then(|spec| spec.cluster_ip)
        .expect("a cluster IP");
    let network = cluster.network().expect("a network").services();
    assert!(network.contains(ip.parse().expect("an address")), "{ip}");
}
