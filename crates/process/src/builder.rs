//! How the process runtime is to be.

use std::path::PathBuf;
use std::sync::Arc;

use crate::ImageStore;
use crate::names::PodHosts;
use crate::table::ImageTable;

/// How containers are run as processes.
///
/// ```no_run
/// use kubewright_process::{ImageProgram, ImageTable, Processes};
///
/// let table = ImageTable::default().image("etcd:*", ImageProgram::new("/usr/bin/etcd"));
/// let runtime = Processes::default().table(table).build()?;
/// # let _ = runtime;
/// # Ok::<(), kubewright_process::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "it does nothing until it is built"]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub struct Processes {
    pub(crate) table: ImageTable,
    pub(crate) helper: Option<PathBuf>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) namespaces: Namespaces,
    pub(crate) hosts: Option<Arc<dyn PodHosts>>,
    pub(crate) images: Option<ImageStore>,
}

/// Whether namespaces are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Namespaces {
    /// Where the kernel allows them.
    #[default]
    Auto,
    /// Never: programs run as plain processes.
    Off,
}

/// Why containers cannot be run as processes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The system is not Linux.
    #[error("running containers as processes needs Linux")]
    NeedsLinux,
    /// No helper was found.
    #[error(
        "no helper was found: give the path of the kubewright command, or of kubewright-process-helper, with \
         Processes::helper"
    )]
    NoHelper,
    /// The directory for pods and volumes cannot be used.
    #[error("the directory for pods and volumes cannot be used")]
    Directory(#[source] std::io::Error),
}

impl Processes {
    /// Which program of this machine stands for which image.
    pub fn table(mut self, table: ImageTable) -> Self {
        self.table = table;
        self
    }

    /// Images that were loaded, which run with their own files. The table comes first.
    pub fn images(mut self, images: ImageStore) -> Self {
        self.images = Some(images);
        self
    }

    /// The helper: the `kubewright` command, or `kubewright-process-helper`. By default this program if it is `kubewright`,
    /// or else one of the two in its directory or on the `PATH`.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.helper = Some(path.into());
        self
    }

    /// Where pods and volumes are kept. Without it they are in a temporary directory that goes with the runtime.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// Whether namespaces are used.
    pub fn namespaces(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Who provides the hosts files of pods: the network of the cluster.
    pub fn hosts(mut self, hosts: Arc<dyn PodHosts>) -> Self {
        self.hosts = Some(hosts);
        self
    }
}
