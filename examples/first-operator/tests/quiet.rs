//! The operator of docs/first-operator.md runs under its generated role, and is silent when nothing changes.

#[allow(dead_code, reason = "the tests have a main function of their own")]
#[path = "../src/main.rs"]
mod program;

use std::time::Duration;

use kubewright::prelude::*;
use kubewright::testing::World;
use program::{Website, WebsiteSpec};

#[tokio::test(start_paused = true)]
async fn first_operator_writes_nothing_when_nothing_changes() {
    let world = World::start().await;
    let spec = WebsiteSpec {
        image: "nginx:latest".to_owned(),
        replicas: 2,
    };
    let mut site = Website::new("shop", spec);
    site.metadata.namespace = Some("default".to_owned());
    world.client.create(&site).await.expect("it is created");
    let is_served = |site: Option<&Website>| {
        let status = site.and_then(|site| site.status.as_ref());
        status.is_some_and(|status| status.available_replicas == 2)
    };
    world.until(&Key::new("default", "shop"), is_served).await;
    world.settled().await;
    // It looks at each Website every half a minute.
    world.assert_no_writes(Duration::from_secs(600)).await;
}
