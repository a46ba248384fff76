//! The role in `rbac.yaml` is enough, and none of it is too much.

mod world;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewright_example_pod_printer::controller;
use kubewright_server::{Authorization, Server};
use kubewright_testing::rbac::{Grant, assert_exact};
use kubewright_testing::within;
use world::{Operator, admin};

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no printer panics").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A Pod that is there and one that comes later are printed, with this grant and on a server that does not stream lists.
async fn does_its_work(grant: &Grant) -> bool {
    let server = Server::builder().authorization(Authorization::Rbac).start();
    let server = server.await.expect("a server starts");
    let user = admin(&server);
    grant.install(&server).await.expect("it is granted");
    let paper = Paper::default();
    let _operator = Operator::start_on(grant.wire(&server), |_| controller(paper.clone(), &[]));
    let mut pod: Pod = serde_saphyr::from_str(include_str!("../sample.yaml")).expect("a Pod");
    for name in ["early", "late"] {
        pod.metadata.name = Some(name.to_owned());
        user.create(&pod).await.expect("it is created");
        let printed = within(Duration::from_secs(20), async || {
            let text = paper.0.lock().expect("no printer panics").clone();
            let text = String::from_utf8_lossy(&text).into_owned();
            text.contains(&format!("Pod {name}\n")).then_some(())
        });
        if printed.await.is_none() {
            return false;
        }
    }
    true
}

#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let grant = Grant::read(include_str!("../rbac.yaml")).expect("a grant");
    assert_exact(&grant, does_its_work).await;
}
