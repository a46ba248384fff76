//! A month in the life of a small cluster: cron jobs, leases, nodes that fall silent and come back, all from one seed.
//!
//! Shared by the test beside it and by `cargo xtask bench cluster`.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kubewright_cluster::node::NodesOptions;
use kubewright_cluster::{Clock, Cluster};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

type Failure = Box<dyn Error + Send + Sync>;

/// What is lived through.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) hours: u64,
    pub(crate) nodes: u64,
    pub(crate) seed: u64,
    /// `nodeLeaseDurationSeconds` of the kubelets, and the time after which a silent node is given up. Leases are renewed
    /// when a quarter of it has passed.
    pub(crate) lease: Duration,
    /// `nodeStatusReportFrequency` of the kubelets.
    pub(crate) report: Duration,
    /// How many minutes pass between two failures of nodes.
    pub(crate) calm: Range<u64>,
    /// How many minutes a node is silent.
    pub(crate) outage: Range<u64>,
}

/// What happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Depends on every write: its place in the order, its kind, and each byte of the object.
    pub(crate) digest: u64,
    /// Writes by collection.
    pub(crate) writes: BTreeMap<String, u64>,
    /// How often a node fell silent.
    pub(crate) failures: u64,
}

impl History {
    fn note(&mut self, collection: &str, key: &str, body: &[u8]) {
        for part in [collection.as_bytes(), key.as_bytes(), body] {
            self.digest = digest(self.digest, part);
        }
        match self.writes.get_mut(collection) {
            Some(count) => *count += 1,
            None => drop(self.writes.insert(collection.to_owned(), 1)),
        }
    }
}

/// Lives through it. The runtime's clock has to be paused.
///
/// # Errors
/// When the cluster does not start or refuses something.
pub(crate) async fn live(span: Span) -> Result<History, Failure> {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse()?);
    let nodes = usize::try_from(span.nodes)?;
    let options = NodesOptions::default()
        .lease_duration(span.lease)
        .status_interval(span.report);
    let builder = Cluster::builder()
        .nodes(nodes)
        .node_options(options)
        .node_grace(span.lease)
        .clock(clock)
        .seed(span.seed);
    let cluster = builder.start().await?;
    let history = Arc::new(Mutex::new(History::default()));
    let noted = history.clone();
    cluster.server().observe(move |collection, event| {
        let mut history = noted.lock().expect("nobody panics while holding it");
        history.note(collection, event.record().key(), event.record().body());
    })?;
    populate(&cluster).await?;
    let failures = endure(&cluster, &span).await?;
    let jobs = Api::<Job>::all(cluster.client());
    let kept = jobs.list(&ListParams::default()).await?.items.len();
    if kept == 0 {
        return Err("no cron job has run".into());
    }
    cluster.stop().await;
    let mut history = history.lock().expect("nobody panics while holding it");
    history.failures = failures;
    Ok(history.clone())
}

/// A web server with a service, and work to do by the hour on working days, four times a day, every night and every
/// week: about twelve jobs a day.
async fn populate(cluster: &Cluster) -> Result<(), Failure> {
    let client = cluster.client();
    let params = PostParams::default();
    let web = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}}});
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments
        .create(&params, &serde_json::from_value(web)?)
        .await?;
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let services: Api<Service> = Api::default_namespaced(client.clone());
    services
        .create(&params, &serde_json::from_value(service)?)
        .await?;
    let crons: Api<CronJob> = Api::default_namespaced(client);
    for (name, schedule, behaviour) in [
        ("hourly", "0 9-17 * * 1-5", json!({})),
        (
            "quarterly",
            "15 */6 * * *",
            json!({"sim.kubewright.dev/exit-after": "90s"}),
        ),
        (
            "nightly",
            "30 2 * * *",
            json!({"sim.kubewright.dev/fail": "once"}),
        ),
        (
            "weekly",
            "0 4 * * 1",
            json!({"sim.kubewright.dev/exit-after": "2h"}),
        ),
    ] {
        let cron = cron(name, schedule, behaviour);
        crons
            .create(&params, &serde_json::from_value(cron)?)
            .await?;
    }
    Ok(())
}

fn cron(name: &str, schedule: &str, annotations: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "work:1"}]},
    }}}}})
}

/// Lets time pass; now and then a node falls silent for a while.
async fn endure(cluster: &Cluster, span: &Span) -> Result<u64, Failure> {
    let end = Instant::now() + Duration::from_secs(span.hours * 3_600);
    let (mut random, mut failures) = (Random(span.seed), 0);
    loop {
        let calm = random.minutes(&span.calm);
        if Instant::now() + calm > end {
            sleep_until(end).await;
            return Ok(failures);
        }
        sleep(calm).await;
        let node = format!("node-{}", random.between(1, span.nodes + 1));
        cluster.nodes().stop(&node).await?;
        sleep(random.minutes(&span.outage)).await;
        cluster.nodes().start(&node).await?;
        failures += 1;
    }
}

/// Random numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    /// A while, to the second.
    fn minutes(&mut self, range: &Range<u64>) -> Duration {
        Duration::from_secs(self.between(range.start * 60, range.end * 60))
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        from + (mixed ^ (mixed >> 31)) % (to - from)
    }
}

/// A digest of all bytes so far and these. Eight at a time: there are gigabytes.
fn digest(so_far: u64, bytes: &[u8]) -> u64 {
    let mix =
        |so_far: u64, word: u64| (so_far.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let (words, rest) = bytes.as_chunks::<8>();
    let so_far = words.iter().fold(so_far, |so_far, word| {
        mix(so_far, u64::from_le_bytes(*word))
    });
    let so_far = rest
        .iter()
        .fold(so_far, |so_far, byte| mix(so_far, u64::from(*byte)));
    mix(so_far, bytes.len() as u64)
}
