//! The role in `rbac.yaml` is enough, and none of it is too much.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewright::testing::World;
use kubewright_example_pod_printer::{cache, controller};

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

/// Pods are printed as they come.
#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let paper = Paper::default();
    let out = paper.clone();
    let world = World::builder()
        .role(include_str!("../rbac.yaml"))
        .manager(move |manager| {
            let controller = controller(out.clone(), &[]);
            manager.cache(cache()).controller(controller)
        })
        .start()
        .await;
    let mut pod: Pod = serde_saphyr::from_str(include_str!("../sample.yaml")).expect("a Pod");
    for name in ["early", "late"] {
        pod.metadata.name = Some(name.to_owned());
        world.client.create(&pod).await.expect("it is created");
        let is_printed = async || {
            let text = paper.0.lock().expect("no printer panics").clone();
            let text = String::from_utf8_lossy(&text).into_owned();
            text.contains(&format!("Pod {name}\n")).then_some(())
        };
        world.until_some("the Pod is printed", is_printed).await;
    }
    world.assert_exact_role();
    world.assert_no_writes(Duration::from_secs(600)).await;
}
