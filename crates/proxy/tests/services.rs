//! Services over a real server and real sockets: where they listen, whom they lead to, and when they stop.

mod support;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kubewright_proxy::ProxyLimits;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, UdpSocket};
use tokio::time::timeout;

use support::{Backend, DRAINING, LIMIT, Line, READY, World, ask, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_leads_to_its_endpoints_in_turn_at_all_of_its_addresses() {
    let world = World::start().await;
    let address = world.service("web", json!({"type": "NodePort"})).await;
    assert!(ask(address, "x").await.is_err(), "nothing is behind it");
    let a = Backend::start(world.pod(2), "a").await;
    let b = Backend::start(world.pod(3), "b").await;
    world
        .endpoints("web", &[(a.address, READY), (b.address, READY)])
        .await;
    until("the cluster IP", async || ask(address, "x").await).await;
    let mut names = BTreeSet::new();
    for _ in 0..2 {
        names.insert(ask(address, "x").await.expect("answered"));
    }
    assert_eq!(names, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    let service = world.get_service("web").await;
    let port = service
        .spec
        .and_then(|spec| spec.ports?.first()?.node_port)
        .expect("a node port");
    let node = SocketAddr::from((world.node_address(), u16::try_from(port).expect("a port")));
    until("the node port", async || ask(node, "x").await).await;
    // One that is not ready gets no new connections.
    world
        .endpoints("web", &[(a.address, READY), (b.address, DRAINING)])
        .await;
    until("a alone", async || {
        let names = [ask(address, "x").await?, ask(address, "x").await?];
        (names == ["a", "a"])
            .then_some(())
            .ok_or(format!("{names:?}"))
    })
    .await;
    // With nobody ready the one that still serves gets them.
    world.endpoints("web", &[(b.address, DRAINING)]).await;
    until("b", async || {
        let name = ask(address, "x").await?;
        (name == "b").then_some(()).ok_or(name)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_is_reached_by_its_service() {
    let world = World::start().await;
    let endpoint = world
        .server
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .expect("listens");
    let port = world.network.api_port();
    let address = SocketAddr::from((
        world.network.services().address(1).expect("an address"),
        port,
    ));
    let service = world.get_service("kubernetes").await;
    let spec = service.spec.expect("a spec");
    assert_eq!(spec.cluster_ip, Some(address.ip().to_string()));
    assert_eq!(
        spec.ports.and_then(|ports| Some(ports.first()?.port)),
        Some(i32::from(port))
    );
    until("the Service of the server", async || {
        Line::connect(address)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
    let kubeconfig = endpoint
        .kubeconfig()
        .as_str()
        .replace(endpoint.url(), &format!("https://{address}"));
    let config = kube::config::Kubeconfig::from_yaml(&kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default())
        .await
        .expect("a config");
    let client = kube::Client::try_from(config).expect("a client");
    client
        .apiserver_version()
        .await
        .expect("TLS by the address of the Service");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_service_frees_its_port_and_leaves_its_connections() {
    let world = World::start().await;
    let address = world.service("web", json!({})).await;
    let a = Backend::start(world.pod(2), "a").await;
    world.endpoints("web", &[(a.address, READY)]).await;
    until("the Service", async || ask(address, "x").await).await;
    let mut open = Line::connect(address).await.expect("connected");
    assert_eq!(open.ask("before").await.expect("answered"), "a");
    world.delete_service("web").await;
    until("a free port", async || {
        TcpListener::bind(address)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(open.ask("after").await.expect("not cut"), "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_an_event_and_is_served_once_it_is_free() {
    let world = World::start().await;
    let ip = world
        .network
        .services()
        .address(0x0123)
        .expect("an address");
    let other = TcpListener::bind((ip, 8080)).await.expect("free");
    let address = world.service("web", json!({"clusterIP": ip})).await;
    let a = Backend::start(world.pod(2), "a").await;
    world.endpoints("web", &[(a.address, READY)]).await;
    let message = until("an event", async || {
        let events = world.events().await;
        let found = events
            .iter()
            .find(|(reason, _)| reason == "PortUnavailable");
        found
            .map(|(_, message)| message.clone())
            .ok_or(format!("{events:?}"))
    })
    .await;
    let expected = format!("cannot listen on {address} (TCP): another program listens there");
    assert_eq!(message, expected);
    drop(other);
    until("the Service", async || ask(address, "x").await).await;
    assert_eq!(world.events().await.len(), 1, "reported once");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_limited_and_those_who_wait_get_their_turn() {
    let limit = std::env::var("KUBEWRIGHT_PROXY_CONNECTIONS")
        .ok()
        .and_then(|text| text.parse().ok());
    let limit = limit.unwrap_or(60);
    let world = World::with_limits(ProxyLimits::default().connections(limit)).await;
    let address = world.service("web", json!({})).await;
    let a = Backend::start(world.pod(2), "a").await;
    world.endpoints("web", &[(a.address, READY)]).await;
    until("the Service", async || ask(address, "x").await).await;
    until("no connection", async || {
        let open = world.proxy.open_connections();
        (open == 0).then_some(()).ok_or(open.to_string())
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..limit {
        let mut line = Line::connect(address).await.expect("connected");
        line.ask("x").await.expect("answered");
        open.push(line);
    }
    assert_eq!(world.proxy.open_connections(), limit);
    let mut late = Line::connect(address)
        .await
        .expect("the kernel's queue takes it");
    let waiting = timeout(Duration::from_millis(200), late.ask("late")).await;
    assert!(waiting.is_err(), "one too many: {waiting:?}");
    assert_eq!(world.proxy.open_connections(), limit);
    drop(open);
    // Its question is on its way already.
    let mut later = Line::connect(address).await.expect("connected");
    assert_eq!(later.ask("later").await.expect("there is room again"), "a");
    assert!(
        late.ask("again")
            .await
            .is_err_and(|error| error.to_string().contains("late")),
        "the first answer comes first"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_ends_with_the_handle() {
    let world = World::start().await;
    let address = world.service("web", json!({})).await;
    let a = Backend::start(world.pod(2), "a").await;
    world.endpoints("web", &[(a.address, READY)]).await;
    until("the Service", async || ask(address, "x").await).await;
    let mut open = Line::connect(address).await.expect("connected");
    open.ask("x").await.expect("answered");
    let hosts = world.network.hosts().dir().to_owned();
    let World { proxy, network, .. } = world;
    drop(proxy);
    until("a free port", async || {
        TcpListener::bind(address)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
    assert!(open.ask("x").await.is_err(), "cut");
    drop(network);
    until("no hosts files", async || {
        if hosts.exists() {
            Err("still there".to_owned())
        } else {
            Ok(())
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_with_affinity_stay_where_they_are() {
    let world = World::start().await;
    let address = world
        .service("web", json!({"sessionAffinity": "ClientIP"}))
        .await;
    let a = Backend::start(world.pod(2), "a").await;
    let b = Backend::start(world.pod(3), "b").await;
    world
        .endpoints("web", &[(a.address, READY), (b.address, READY)])
        .await;
    let own = until("the Service", async || ask(address, "x").await).await;
    for _ in 0..5 {
        assert_eq!(ask(address, "x").await.expect("answered"), own);
    }
    // A client at another address has an endpoint of its own, and is seen there with its address.
    let socket = TcpSocket::new_v4().expect("a socket");
    let client = world.network.pods().address(9).expect("an address");
    socket
        .bind((IpAddr::from(client), 0).into())
        .expect("bound");
    let stream = socket.connect(address).await.expect("connected");
    assert_eq!(stream.local_addr().expect("an address").ip(), client);
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_find_their_endpoint_and_their_way_back() {
    let world = World::start().await;
    let ports = json!([{"name": "main", "port": 8080, "protocol": "UDP"}]);
    let address = world.service("names", json!({"ports": ports})).await;
    let backend = UdpSocket::bind((world.pod(2), 9000)).await.expect("bound");
    let own = backend.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut buffer = [0; 2_000];
        while let Ok((count, from)) = backend.recv_from(&mut buffer).await {
            let _ = backend.send_to(&buffer[..count], from).await;
        }
    });
    world.endpoints("names", &[(own, READY)]).await;
    world.udp_port("names").await;
    let client = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let answer = until("an answer", async || {
        client
            .send_to(b"question", address)
            .await
            .map_err(|error| error.to_string())?;
        let mut buffer = [0; 2_000];
        let received = timeout(Duration::from_millis(100), client.recv_from(&mut buffer)).await;
        let (count, from) = received
            .map_err(|_| "nothing")?
            .map_err(|error| error.to_string())?;
        Ok((buffer[..count].to_vec(), from))
    })
    .await;
    assert_eq!(answer, (b"question".to_vec(), address));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_gets_an_address_and_listens_there() {
    let world = World::start().await;
    world.service("web", json!({"type": "LoadBalancer"})).await;
    let a = Backend::start(world.pod(2), "a").await;
    world.endpoints("web", &[(a.address, READY)]).await;
    let ip = until("an address", async || {
        let status = world.get_service("web").await.status;
        let ingress = status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref()?.first());
        ingress
            .and_then(|ingress| ingress.ip.clone())
            .ok_or(format!("{status:?}"))
    })
    .await;
    let ip: IpAddr = ip.parse().expect("an address");
    until("the load balancer", async || {
        ask((ip, 8080).into(), "x").await
    })
    .await;
    let ports = json!([{"name": "main", "port": 8080}]);
    world
        .change_service("web", json!({"type": "ClusterIP", "ports": ports}))
        .await;
    until("no address", async || {
        let status = world.get_service("web").await.status;
        let left = status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref()?.ingress.clone());
        left.is_none_or(|left| left.is_empty())
            .then_some(())
            .ok_or(format!("{status:?}"))
    })
    .await;
    until("a free port", async || {
        TcpListener::bind((ip, 8080))
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
    assert!(timeout(LIMIT, a.stop()).await.is_ok());
}
