//! What a runtime is given of the volumes of a pod: what is in them, read again whenever it may have changed.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use kubewright_cache::{Key, Reader};
use tokio::sync::mpsc;

use super::tokens::Tokens;
use crate::node::kubelet::downward::Place;
use crate::node::kubelet::mounts;
use crate::node::kubelet::sources::Cached;
use crate::node::news::News;

/// A volume of a pod with everything resolved that the API server knows of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PodVolume {
    /// The name of the volume in the pod.
    pub name: String,
    /// What the volume consists of.
    pub source: VolumeSource,
}

/// What a volume consists of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum VolumeSource {
    /// Files from ConfigMaps, Secrets, projections or the downward API. They change together.
    Files(Vec<VolumeFile>),
    /// A directory that is empty at first and goes with the pod.
    Empty {
        /// Where its files are.
        medium: Medium,
        /// How many bytes may be in it.
        limit: Option<u64>,
    },
    /// A file or directory of the machine.
    Host {
        /// The path on the machine.
        path: String,
        /// What has to be there, such as `DirectoryOrCreate`; empty for anything.
        kind: String,
    },
    /// The persistent volume that a claim is bound to.
    Claim(Arc<PersistentVolume>),
    /// A kind of volume that only a real node has, by its field name in the pod.
    Other(String),
}

/// Where the files of an empty directory are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// On the disk of the node.
    Disk,
    /// In memory, without a disk.
    Memory,
}

/// A file of a volume.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VolumeFile {
    /// The path of the file in the volume.
    pub path: String,
    /// The content of the file.
    pub content: Bytes,
    /// The permissions of the file, as in `chmod`.
    pub mode: u32,
    /// The user that the file belongs to; nothing for the node's own.
    pub owner: Option<i64>,
}

impl VolumeFile {
    /// A file that belongs to the node's own user.
    pub fn new(path: &str, content: impl Into<Bytes>, mode: u32) -> Self {
        Self {
            path: path.to_owned(),
            content: content.into(),
            mode,
            owner: None,
        }
    }
}

impl fmt::Debug for VolumeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VolumeFile({}, {} bytes)", self.path, self.content.len())
    }
}

/// Why a volume of a pod cannot be mounted; the node reports the text in an event `FailedMount` and tries again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume {volume:?} : {why}")]
#[non_exhaustive]
pub struct MountError {
    /// The name of the volume in the pod.
    pub volume: String,
    /// Why it cannot be mounted.
    pub why: String,
}

impl MountError {
    /// Says why a volume cannot be mounted.
    pub fn new(volume: &str, why: impl fmt::Display) -> Self {
        Self {
            volume: volume.to_owned(),
            why: why.to_string(),
        }
    }
}

/// The volumes of one pod. Each read has what the API server has at that moment, with tokens that are good for a while.
#[derive(Clone)]
pub struct PodVolumes {
    pub(crate) pod: Arc<Pod>,
    pub(crate) pods: Reader<Pod>,
    pub(crate) place: Place,
    pub(crate) sources: Cached,
    pub(crate) tokens: Tokens,
    pub(in crate::node) news: mpsc::WeakSender<News>,
}

impl PodVolumes {
    /// The pod as it was seen last.
    pub fn pod(&self) -> Arc<Pod> {
        let found = self.pods.get(&self.key());
        let same = found.filter(|pod| pod.metadata.uid == self.pod.metadata.uid);
        same.unwrap_or_else(|| self.pod.clone())
    }

    /// Reads all volumes of the pod. Tokens of service accounts are requested when they are missing or soon expire.
    ///
    /// # Errors
    /// Which volume cannot be made, and why.
    pub async fn read(&self) -> Result<Vec<PodVolume>, MountError> {
        let pod = self.pod();
        let tokens = self.tokens.of_pod(&pod).await?;
        mounts::resolved(&pod, &self.place, &self.sources, &tokens)
    }
}

impl PodVolumes {
    /// Evicts the pod, because a volume of it has become larger than its limit: it ends, and fails with the reason `Evicted` and
    /// this message. Nothing happens to a pod that has left its node, or when the nodes have stopped.
    pub async fn evict(&self, message: String) {
        let Some(news) = self.news.upgrade() else {
            return;
        };
        let uid = self.pod.metadata.uid.clone().unwrap_or_default();
        // An error means that the nodes have stopped.
        let _ = news.send(News::Excess(self.key(), uid, message)).await;
    }

    fn key(&self) -> Key {
        let meta = &self.pod.metadata;
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Key::new(&text(&meta.namespace), &text(&meta.name))
    }

    /// The uids of all pods that there are, for a runtime that looks for what it has left of others.
    pub fn all_pods(&self) -> std::collections::HashSet<String> {
        let all = self.pods.list().into_iter();
        all.filter_map(|pod| pod.metadata.uid.clone()).collect()
    }
}

impl fmt::Debug for PodVolumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.pod.metadata.name.as_deref().unwrap_or("");
        write!(f, "PodVolumes({name})")
    }
}
