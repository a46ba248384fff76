//! The life of an EtcdCluster on real etcd, for `cargo xtask etcd`: the operator is a process of its own with its own role, a
//! writer checks every key that was acknowledged.

mod losses;
mod maintenance;
mod refusals;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use kubewright::prelude::{Key, Query, conditions};
use kubewright_example_etcd::EtcdCluster;
use kubewright_example_etcd::api::Role;
use kubewright_example_etcd::certificates::client_tls;
use kubewright_example_etcd::plan::majority;
use kubewright_lane::processes::signal;
use kubewright_lane::{Deployed, Plan, Pods};
use kubewright_process::{ImageProgram, ImageTable};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use writer::{Client, Written, lost};

/// How long a cluster may take to be what it should be.
const PATIENCE: Duration = Duration::from_secs(420);
const OLD: &str = "3.4.23";
const NEW: &str = "3.5.1";

struct Lane {
    deployed: Deployed,
    pods: Pods,
    written: Arc<Mutex<Written>>,
    /// How often more voters were away than a quorum allows, while nobody killed any.
    quorum_lost: Arc<Mutex<u64>>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let path = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .context(name.to_owned())
    };
    let root = path("LANE_ROOT")?;
    let plan = Plan {
        operator: &path("ETCD_OPERATOR")?,
        role: include_str!("../../rbac.yaml"),
        helper: &path("PROCESS_HELPER")?,
        images: images(&[(OLD, path("ETCD_OLD")?), (NEW, path("ETCD_NEW")?)]),
        folder: &root,
    };
    let deployed = Deployed::start(plan).await?;
    let lane = Lane {
        pods: Pods::follow(deployed.cluster.client(), member),
        deployed,
        written: Arc::default(),
        quorum_lost: Arc::default(),
    };
    let lived = Box::pin(lane.live()).await;
    if lived.is_err() {
        lane.deployed.save_logs(&root).await;
    }
    lived
}

/// The images of etcd. The programs of each version are in a directory.
fn images(versions: &[(&str, PathBuf)]) -> ImageTable {
    let mut table = ImageTable::default();
    for (version, programs) in versions {
        let image = format!("quay.io/coreos/etcd:v{version}");
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let program = ImageProgram::new(programs.join("etcd").display().to_string());
        table = table.image(image.as_str(), program.env("PATH", path));
    }
    table
}

/// The name of the member that a process is.
fn member(words: &[String]) -> Option<String> {
    let is_etcd = words.first().map(Path::new)?.ends_with("etcd");
    let name = words.iter().find_map(|word| word.strip_prefix("--name="));
    name.filter(|_| is_etcd).map(str::to_owned)
}

impl Lane {
    async fn live(&self) -> Result<()> {
        let began = Instant::now();
        let spec = json!({"size": 1, "version": OLD, "memberTimeoutSeconds": 90});
        self.create("e", serde_json::from_value(spec)?).await?;
        self.ready("e", 1).await?;
        let client = self.client("e").await?;
        let writer = tokio::spawn(client.clone().write(self.written.clone()));
        let monitor = tokio::spawn(monitor(client.clone(), self.quorum_lost.clone()));
        println!("1 member after {:.1?}", began.elapsed());

        self.resize(3).await?;
        self.refuse().await?;
        self.resize(5).await?;
        self.check(&client).await?;
        let defragmented = self.defragment().await?;
        monitor.abort();
        self.kill().await?;
        self.check(&client).await?;
        let monitor = tokio::spawn(crate::monitor(client.clone(), self.quorum_lost.clone()));
        self.renew().await?;
        self.lose().await?;
        self.upgrade().await?;
        self.check(&client).await?;
        let saved = self.back_up().await?;
        self.resize(3).await?;
        self.resize(1).await?;
        self.check(&client).await?;
        monitor.abort();
        self.restore(&saved).await?;
        self.defragmented_again(defragmented).await?;
        writer.abort();
        self.check(&client).await?;
        let (written, lost_quorum) = (self.written.lock(), *self.quorum_lost.lock());
        println!(
            "{} keys acknowledged, {} without an answer, 0 lost; quorum lost by the operator {lost_quorum} times; {:.0?} in all",
            written.acknowledged.len(),
            written.failed,
            began.elapsed()
        );
        ensure!(lost_quorum == 0, "the operator lost the quorum");
        self.deployed.assert_exact_role()
    }

    async fn create(
        &self,
        name: &str,
        spec: kubewright_example_etcd::EtcdClusterSpec,
    ) -> Result<()> {
        let mut cluster = EtcdCluster::new(name, spec);
        cluster.metadata.namespace = Some("default".to_owned());
        self.deployed.client.create(&cluster).await?;
        Ok(())
    }

    async fn change(&self, change: impl FnOnce(&mut EtcdCluster)) -> Result<()> {
        let cluster = self.cluster("e").await?;
        self.deployed.client.modify(&cluster, change).await?;
        self.written.lock().longest = Duration::ZERO;
        Ok(())
    }

    async fn cluster(&self, name: &str) -> Result<EtcdCluster> {
        let found = self
            .deployed
            .client
            .live()
            .get(&Key::new("default", name))
            .await?;
        found.context("the cluster is there")
    }

    /// Waits until a cluster is as its spec wants it, and its objects are too.
    async fn ready(&self, name: &str, size: usize) -> Result<EtcdCluster> {
        let is_ready = |cluster: &EtcdCluster| {
            let status = cluster.status.clone().unwrap_or_default();
            let voters = status.members.iter().filter(|it| it.role != Role::Learner);
            let healthy = voters.filter(|it| it.healthy).count();
            let version = status.version.as_deref() == Some(cluster.spec.version.as_str());
            status.observed_generation == cluster.metadata.generation
                && conditions::is_false(&status.conditions, "Progressing")
                && (healthy, status.members.len(), version) == (size, size, true)
        };
        let key = Key::new("default", name);
        self.deployed.until(&key, PATIENCE, is_ready).await
    }

    async fn client(&self, cluster: &str) -> Result<Client> {
        let key = Key::new("default", &format!("{cluster}-client-tls"));
        let secret: Option<Secret> = self.deployed.client.live().get(&key).await?;
        let tls = client_tls(&secret.context("a certificate for clients")?)?;
        Ok(Client {
            cluster: cluster.to_owned(),
            pods: self.pods.clone(),
            tls: Arc::new(tls),
        })
    }

    fn stall(&self) -> Duration {
        self.written.lock().longest
    }

    async fn resize(&self, size: i32) -> Result<()> {
        let began = Instant::now();
        self.change(|cluster| cluster.spec.size = size).await?;
        self.ready("e", usize::try_from(size)?).await?;
        let (took, stall) = (began.elapsed(), self.stall());
        println!("{size} members after {took:.1?}, longest time without a write {stall:.1?}");
        Ok(())
    }

    /// Kills 20 members and 5 operators. Nodes start a member again later each time, so the next one is killed when a quorum runs.
    async fn kill(&self) -> Result<()> {
        let began = Instant::now();
        let mut random = u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for count in 1..=20 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pids = self.until_running(3).await?;
            let which = usize::try_from(random >> 33)? % pids.len();
            signal("KILL", &[pids[which]]);
            if count % 4 == 0 {
                self.deployed.kill_operator().await?;
            }
            tokio::time::sleep(Duration::from_millis(500 + (random >> 50) % 2500)).await;
        }
        self.ready("e", 5).await?;
        let (took, stall) = (began.elapsed(), self.stall());
        println!(
            "20 members and 5 operators killed, 5 members healthy again after {took:.1?}, longest time without a write {stall:.1?}"
        );
        Ok(())
    }

    /// Waits until so many members run, and gives their processes.
    async fn until_running(&self, members: usize) -> Result<Vec<u32>> {
        let end = Instant::now() + PATIENCE;
        loop {
            let running = self.pods.running().pids.clone();
            if running.len() >= members {
                return Ok(running.into_values().collect());
            }
            ensure!(
                Instant::now() < end,
                "no quorum runs; last seen: {running:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn upgrade(&self) -> Result<()> {
        let began = Instant::now();
        self.change(|cluster| cluster.spec.version = NEW.to_owned())
            .await?;
        self.ready("e", 5).await?;
        let (took, stall) = (began.elapsed(), self.stall());
        println!("{OLD} to {NEW} after {took:.1?}, longest time without a write {stall:.1?}");
        Ok(())
    }

    async fn restore(&self, (before, file): &(Vec<u64>, String)) -> Result<()> {
        let began = Instant::now();
        let spec = json!({
            "size": 3, "version": NEW, "restore": {"claimName": "e-backup", "snapshot": file},
        });
        self.create("r", serde_json::from_value(spec)?).await?;
        self.ready("r", 3).await?;
        let client = self.client("r").await?;
        let found = client
            .read_all()
            .await
            .context("the restored cluster is read")?;
        let lost = lost(before, &found);
        let took = began.elapsed();
        println!(
            "restored into 3 members after {took:.1?}: {} keys of {} before the snapshot, {lost} lost",
            found.len(),
            before.len()
        );
        ensure!(lost == 0, "{lost} keys are not in the snapshot");
        Ok(())
    }

    /// Looks whether every key that was acknowledged is there.
    async fn check(&self, client: &Client) -> Result<()> {
        let acknowledged = self.written.lock().acknowledged.clone();
        let found = client.read_all().await.context("the keys are read")?;
        let lost = lost(&acknowledged, &found);
        println!("  {} keys acknowledged, {lost} lost", acknowledged.len());
        ensure!(lost == 0, "{lost} acknowledged keys are lost");
        self.members_are_pods(self.cluster("e").await?.spec.size)
            .await
    }

    async fn members_are_pods(&self, size: i32) -> Result<()> {
        let cluster = self.cluster("e").await?;
        let members = cluster.status.unwrap_or_default().members;
        let mut members: Vec<String> = members.into_iter().map(|it| it.name).collect();
        let here = Query::all().namespace("default");
        let pods = self.deployed.client.live().list::<Pod>(here).await?;
        let mut pods: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        pods.retain(|name| name.starts_with("e-") && !name.contains("backup"));
        members.sort();
        pods.sort();
        ensure!(members == pods, "members {members:?}, pods {pods:?}");
        ensure!(
            i32::try_from(pods.len())? == size,
            "{size} members were asked for: {pods:?}"
        );
        Ok(())
    }
}

/// Counts how often less than a quorum of the voters runs, while nobody kills any: that would be the operator's doing.
async fn monitor(client: Client, lost: Arc<Mutex<u64>>) {
    use kubewright_example_etcd::etcd::{Etcd as _, Gateway};
    use kubewright_example_etcd::transport::Network;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        for endpoint in client.endpoints() {
            let Ok(members) = Gateway(Network).members(&endpoint).await else {
                continue;
            };
            let running = client.pods.running();
            let voters = members.iter().filter(|member| !member.is_learner);
            let voters: Vec<&str> = voters.map(|member| member.pod()).collect();
            let up = voters
                .iter()
                .filter(|name| running.pids.contains_key(**name));
            if voters.len() >= 3 && up.count() < majority(voters.len()) {
                *lost.lock() += 1;
            }
            break;
        }
    }
}
