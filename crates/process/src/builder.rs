//! How the process runtime is to be.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cgroup::OwnCgroups;
use crate::helper_program::{Helper, find_helper};
use crate::images::ImageStore;
use crate::isolation::Isolation;
use crate::ledger;
use crate::names::PodHosts;
use crate::options::Options;
use crate::runtime::ProcessRuntime;
use crate::state::State;
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
pub struct Processes {
    table: ImageTable,
    helper: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    namespaces: Namespaces,
    hosts: Option<Arc<dyn PodHosts>>,
    images: Option<ImageStore>,
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

    /// Makes the runtime, for `Cluster::builder().runtime(..)`. Processes that an earlier one with the same directory has left
    /// are ended.
    ///
    /// # Errors
    /// When there is no helper, or the directory cannot be used or is used by another cluster.
    pub fn build(self) -> Result<Arc<ProcessRuntime>, BuildError> {
        let path = self
            .helper
            .or_else(find_helper)
            .ok_or(BuildError::NoHelper)?;
        let helper = Helper::at(path);
        let state = match &self.data_dir {
            Some(path) => State::at(path),
            None => State::temporary(),
        };
        let state = state.map_err(BuildError::Directory)?;
        ledger::end_all(&state.ledger(), state.id());
        let isolation = match self.namespaces {
            Namespaces::Auto => Isolation::tried(&helper, &state.empty()),
            Namespaces::Off => Isolation::None("not wanted".to_owned()),
        };
        let options = Options {
            table: self.table,
            images: self.images,
            helper,
            isolation,
            cgroups: OwnCgroups::make(state.id()).map(Arc::new),
            state,
            hosts: self.hosts,
        };
        Ok(Arc::new(ProcessRuntime::new(options)))
    }
}
