//! How the process runtime is to be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::helper::HELPER_COMMAND;
use crate::isolation::Isolation;
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

/// What a runtime was made with.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) table: ImageTable,
    pub(crate) helper: Helper,
    pub(crate) state: State,
    pub(crate) isolation: Isolation,
}

/// The program that is the helper.
#[derive(Debug, Clone)]
pub(crate) struct Helper {
    pub(crate) path: PathBuf,
    pub(crate) subcommand: Option<&'static str>,
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

    /// Makes the runtime, for `Cluster::builder().runtime(..)`.
    ///
    /// # Errors
    /// When there is no helper.
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
        let isolation = match self.namespaces {
            Namespaces::Auto => Isolation::tried(&helper, &state.empty()),
            Namespaces::Off => Isolation::None("not wanted".to_owned()),
        };
        let options = Options {
            table: self.table,
            helper,
            state,
            isolation,
        };
        Ok(Arc::new(ProcessRuntime::new(options)))
    }
}

impl Helper {
    fn at(path: PathBuf) -> Self {
        let subcommand = is_kubewright(&path).then_some(HELPER_COMMAND);
        Self { path, subcommand }
    }
}

fn is_kubewright(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "kubewright")
}

fn find_helper() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    if is_kubewright(&own) {
        return Some(own);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beside = own.parent().map(Path::to_path_buf);
    let places: Vec<PathBuf> = beside
        .into_iter()
        .chain(std::env::split_paths(&path))
        .collect();
    let names = ["kubewright-process-helper", "kubewright"];
    let mut found = places
        .iter()
        .flat_map(|place| names.map(|name| place.join(name)));
    found.find(|file| file.is_file())
}
