//! What runs at the moment, and where: the addresses of pods as the server has them, and their processes as the machine has them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::processes::{descendants, words};

/// How often it is looked at what runs.
const PERIOD: Duration = Duration::from_millis(100);

/// What runs at the moment.
#[derive(Debug, Clone, Default)]
pub struct Running {
    /// The main processes of pods by the name of their pod.
    pub pids: BTreeMap<String, u32>,
    /// The addresses of pods by name.
    pub addresses: BTreeMap<String, String>,
}

/// A table of the pods in the namespace `default`, which is kept up to date as long as a clone of it exists.
#[derive(Debug, Clone)]
pub struct Pods(Arc<Followed>);

#[derive(Debug)]
struct Followed {
    running: Arc<Mutex<Running>>,
    task: JoinHandle<()>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pods {
    /// Follows the pods of a cluster. `name` gives the name of the pod for the command line of its main process.
    pub fn follow(client: Client, name: fn(&[String]) -> Option<String>) -> Self {
        let running: Arc<Mutex<Running>> = Arc::default();
        let shared = running.clone();
        let task = tokio::spawn(async move {
            let pods: Api<Pod> = Api::namespaced(client, "default");
            loop {
                if let Ok(all) = pods.list(&ListParams::default()).await {
                    shared.lock().addresses = all.iter().filter_map(address).collect();
                }
                shared.lock().pids = processes(name);
                sleep(PERIOD).await;
            }
        });
        Self(Arc::new(Followed { running, task }))
    }

    /// What runs, as it was seen a moment ago.
    pub fn running(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock()
    }
}

fn address(pod: &Pod) -> Option<(String, String)> {
    Some((pod.name_any(), pod.status.as_ref()?.pod_ip.clone()?))
}

/// The main processes of containers, which are all below this process.
fn processes(name: fn(&[String]) -> Option<String>) -> BTreeMap<String, u32> {
    let all = descendants(std::process::id()).into_iter();
    all.filter_map(|pid| Some((name(&words(pid))?, pid)))
        .collect()
}
