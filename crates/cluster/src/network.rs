//! A cluster in a network of this machine: what its server and its proxy have to know of that.

use k8s_openapi::api::core::v1::Service;
use kube::api::PostParams;
use kubewright_proxy::{LoopbackNetwork, ProxyOptions};
use kubewright_server::{Server, ServiceNetwork};
use serde_json::json;

use crate::identity::Acting;

/// The Service of the DNS server, which has the name that it has everywhere.
const DNS_NAMESPACE: &str = "kube-system";
const DNS: &str = "kube-dns";

/// The addresses of Services.
pub(crate) fn services(network: &LoopbackNetwork) -> ServiceNetwork {
    let services: ServiceNetwork = network.services().to_string().parse().expect("a /16");
    services.api_port(network.api_port())
}

/// What the proxy of a cluster does. The addresses of load balancers are given by a controller of the cluster.
pub(crate) fn proxy_options(network: &LoopbackNetwork) -> ProxyOptions {
    ProxyOptions::of_network(network)
        .without_load_balancers()
        .except(DNS_NAMESPACE, DNS)
}

/// Creates the Service of the DNS server, unless it is there: the proxy itself answers at its address.
///
/// # Errors
/// When the server refuses the Service.
pub(crate) async fn ensure_dns_service(
    network: &LoopbackNetwork,
    server: &Server,
) -> Result<(), kube::Error> {
    let address = network.dns_address();
    let port = |name: &str, protocol: &str| json!({"name": name, "port": address.port(), "protocol": protocol});
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": DNS, "labels": {"k8s-app": DNS, "kubernetes.io/name": "CoreDNS"}},
        "spec": {
            "clusterIP": address.ip().to_string(),
            "ports": [port("dns", "UDP"), port("dns-tcp", "TCP")],
        },
    });
    let client = kube::Client::new(server.service(), DNS_NAMESPACE);
    let acting = Acting::of(&client);
    let (namespace, params) = (Some(DNS_NAMESPACE), PostParams::default());
    // Looked for first: the address is taken, of which a server speaks before it speaks of the name.
    let found: Option<Service> = acting.get_opt(namespace, DNS).await?;
    if found.is_some() {
        return Ok(());
    }
    let posted = acting.post::<Service>(namespace, &params, &service);
    match posted.await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        other => other,
    }
}
