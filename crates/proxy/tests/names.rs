//! Names of Services, by hosts files and by DNS, over a real server.

mod support;

use std::net::Ipv4Addr;
use std::time::Duration;

use kubewright_proxy::HostsLine;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use support::{READY, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn hosts_files_follow_services() {
    let world = World::start().await;
    let own = HostsLine {
        address: world.pod(7).into(),
        names: vec!["web-0".to_owned()],
    };
    let hosts = world.network.hosts();
    let path = hosts.add("uid-7", "default", &[own]).expect("a file");
    let read = || std::fs::read_to_string(&path).expect("a file");
    assert!(read().contains(&format!("{}\tweb-0\n", world.pod(7))));
    let address = world.service("web", json!({})).await;
    let line = format!(
        "{}\tweb.default.svc.cluster.local web.default.svc web.default web\n",
        address.ip()
    );
    until("a line", async || {
        read().contains(&line).then_some(()).ok_or(read())
    })
    .await;
    world.delete_service("web").await;
    until("no line", async || {
        if read().contains(&line) {
            Err(read())
        } else {
            Ok(())
        }
    })
    .await;
    hosts.remove("uid-7");
    assert!(!path.exists());
}

/// The bytes of a question of type A.
fn question(name: &str) -> Vec<u8> {
    let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

/// The addresses of an answer: records of type A are at its end, 16 bytes each.
fn addresses(answer: &[u8]) -> Vec<Ipv4Addr> {
    let count = usize::from(u16::from_be_bytes([answer[6], answer[7]]));
    let records = answer[answer.len() - 16 * count..].chunks(16);
    let last = |record: &[u8]| Ipv4Addr::new(record[12], record[13], record[14], record[15]);
    records.map(last).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dns_answers_over_udp_and_tcp() {
    let world = World::start().await;
    let dns = world.proxy.dns_address().expect("a DNS server");
    assert_eq!(dns, world.network.dns_address());
    world.service("db", json!({"clusterIP": "None"})).await;
    let pods: Vec<Ipv4Addr> = (2..52).map(|number| world.pod(number)).collect();
    let endpoints: Vec<_> = pods
        .iter()
        .map(|pod| ((*pod, 9000).into(), READY))
        .collect();
    world.endpoints("db", &endpoints[..2]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let ask = async |name: &str| {
        socket.send_to(&question(name), dns).await.expect("sent");
        let mut buffer = vec![0; 4_096];
        let received = timeout(Duration::from_secs(10), socket.recv(&mut buffer)).await;
        buffer.truncate(received.expect("an answer").expect("received"));
        buffer
    };
    let name = "db.default.svc.cluster.local";
    until("the addresses of the pods", async || {
        let found = addresses(&ask(name).await);
        (found == pods[..2])
            .then_some(())
            .ok_or(format!("{found:?}"))
    })
    .await;
    world.endpoints("db", &endpoints).await;
    until("an answer that is too long", async || {
        let answer = ask(name).await;
        assert!(answer.len() <= 512);
        (answer[2] & 2 == 2)
            .then_some(())
            .ok_or(format!("{answer:?}"))
    })
    .await;
    let mut stream = TcpStream::connect(dns).await.expect("connected");
    for _ in 0..2 {
        let question = question(name);
        stream
            .write_u16(question.len() as u16)
            .await
            .expect("written");
        stream.write_all(&question).await.expect("written");
        let length = stream.read_u16().await.expect("a length");
        let mut answer = vec![0; length.into()];
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(addresses(&answer), pods);
    }
    let (mut closed, mut end) = (
        TcpStream::connect(dns).await.expect("connected"),
        Vec::new(),
    );
    closed
        .write_all(&[0xff, 0xff, 0, 0])
        .await
        .expect("written");
    timeout(Duration::from_secs(10), closed.read_to_end(&mut end))
        .await
        .expect("closed")
        .ok();
    assert!(end.is_empty(), "{end:?}");
}
