//! What the API server refuses while the operator runs: even sizes by the schema, what is unsafe for the cluster as it is by the
//! operator's webhook.

use anyhow::{Context as _, Result, bail, ensure};
use kubewright::prelude::Key;
use kubewright::runtime::ClientError;
use kubewright_example_etcd::EtcdCluster;
use kubewright_lane::assert_refused;
use kubewright_lane::processes::signal;

use crate::{Lane, PATIENCE};

impl Lane {
    /// Asks a cluster of three members for what it cannot become.
    pub(crate) async fn refuse(&self) -> Result<()> {
        let even = self.attempt(|cluster| cluster.spec.size = 4).await?;
        let Err(even) = even else {
            bail!("a cluster of four members was accepted");
        };
        let even = kubewright::Error::from(even).report();
        ensure!(even.contains("must be an odd number"), "{even}");
        println!("  the schema refused: must be an odd number");

        let skipped = |cluster: &mut EtcdCluster| cluster.spec.version = "3.6.0".to_owned();
        assert_refused(self.attempt(skipped).await?, "cannot follow 3.4.23")?;

        let name = self.some_member().await?;
        let pid = self.pods.running().pids.get(&name).copied();
        let pid = pid.context("a member has a process")?;
        signal("STOP", &[pid]);
        let refused = async {
            self.until_unhealthy(&name).await?;
            let small = self.attempt(|cluster| cluster.spec.size = 1).await?;
            assert_refused(small, "is less than the quorum of 2")
        };
        let refused = refused.await;
        signal("CONT", &[pid]);
        refused?;
        self.ready("e", 3).await.map(drop)
    }

    /// Asks for a change, and gives the server's answer.
    async fn attempt(
        &self,
        change: impl FnOnce(&mut EtcdCluster),
    ) -> Result<Result<(), ClientError>> {
        let cluster = self.cluster("e").await?;
        let changed = self.deployed.client.modify(&cluster, change).await;
        Ok(changed.map(drop))
    }

    async fn until_unhealthy(&self, name: &str) -> Result<()> {
        let is_away = |cluster: &EtcdCluster| {
            let mut members = cluster.status.iter().flat_map(|status| &status.members);
            members.any(|member| member.name == name && !member.healthy)
        };
        let key = Key::new("default", "e");
        self.deployed.until(&key, PATIENCE, is_away).await.map(drop)
    }
}
