//! The members of a cluster: where they are, how to log in, and what is done to them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Secret;
use kubewright::prelude::*;
use kubewright::runtime::Client;
use kubewright_example_postgres::secret_name;
use kubewright_lane::Pods;
use kubewright_lane::processes::{descendants, signal};
use parking_lot::Mutex;
use tokio::time::sleep;

/// How often a member is hurt.
const AGAIN: Duration = Duration::from_millis(200);

/// What is done to a primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Violence {
    /// SIGKILL of the agent and of all processes of the database.
    KillAll,
    /// SIGKILL of the main process of the database.
    KillDatabase,
    /// SIGKILL of the agent alone.
    KillAgent,
    /// SIGSTOP of everything, SIGCONT when another primary is at work.
    StopAll,
    /// SIGSTOP of the agent alone: the database runs on, and nobody hears of it.
    StopAgent,
}

/// The members of all clusters. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Members {
    pods: Pods,
    client: Client,
    /// The password of each cluster.
    passwords: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Members {
    pub(crate) fn new(pods: Pods, client: Client) -> Self {
        Self {
            pods,
            client,
            passwords: Arc::default(),
        }
    }

    /// The members of a cluster that have an address.
    pub(crate) fn addresses(&self, cluster: &str) -> Vec<(String, String)> {
        let is_member = |name: &str| {
            let (of, number) = name.rsplit_once('-').unwrap_or_default();
            of == cluster && number.parse::<u32>().is_ok()
        };
        let running = self.pods.running();
        let members = running.addresses.iter();
        members
            .filter(|(name, _)| is_member(name))
            .map(|(name, address)| (name.clone(), address.clone()))
            .collect()
    }

    /// The password of the administrator of a cluster.
    pub(crate) async fn password(&self, cluster: &str) -> Result<String> {
        if let Some(known) = self.passwords.lock().get(cluster) {
            return Ok(known.clone());
        }
        let key = Key::new("default", &secret_name(cluster));
        let secret: Option<Secret> = self.client.live().get(&key).await?;
        let data = secret.and_then(|secret| secret.data);
        let password = data.and_then(|mut data| data.remove("password"));
        let password = String::from_utf8(password.context("there is no password")?.0)?;
        let known = (cluster.to_owned(), password.clone());
        self.passwords.lock().extend([known]);
        Ok(password)
    }

    fn agent(&self, member: &str) -> Option<u32> {
        self.pods.running().pids.get(member).copied()
    }

    /// Hurts the processes of a member, repeatedly until this is dropped: whatever was killed is started again within
    /// milliseconds, and goes on in the same term.
    pub(crate) async fn hurt(&self, member: &str, violence: Violence) -> Infallible {
        loop {
            if let Some(agent) = self.agent(member) {
                let below = descendants(agent);
                match violence {
                    Violence::KillAll => signal("KILL", &[vec![agent], below].concat()),
                    Violence::StopAll => signal("STOP", &[vec![agent], below].concat()),
                    Violence::KillAgent => signal("KILL", &[agent]),
                    Violence::StopAgent => signal("STOP", &[agent]),
                    Violence::KillDatabase => signal("KILL", &below[..below.len().min(1)]),
                }
            }
            sleep(AGAIN).await;
        }
    }

    /// Has what was stopped go on.
    pub(crate) fn resume(&self, member: &str, violence: Violence) {
        if matches!(violence, Violence::StopAll | Violence::StopAgent)
            && let Some(agent) = self.agent(member)
        {
            signal("CONT", &[vec![agent], descendants(agent)].concat());
        }
    }
}
