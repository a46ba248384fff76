//! What a runtime was made with.

use std::sync::Arc;

use crate::builder::{BuildError, Namespaces, Processes};
use crate::cgroup::{CgroupError, OwnCgroups};
use crate::helper_program::{Helper, find_helper};
use crate::images::{ImageStore, StoredImage};
use crate::isolation::Isolation;
use crate::ledger;
use crate::names::PodHosts;
use crate::state::State;
use crate::table::{ImageProgram, ImageTable};

/// Everything that a runtime was made with.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) table: ImageTable,
    pub(crate) images: Option<ImageStore>,
    pub(crate) helper: Helper,
    pub(crate) state: State,
    pub(crate) isolation: Isolation,
    /// Where limits are set; why not, where they cannot be.
    pub(crate) cgroups: Result<Arc<OwnCgroups>, Arc<CgroupError>>,
    pub(crate) hosts: Option<Arc<dyn PodHosts>>,
}

/// What an image is on this machine.
#[derive(Debug, Clone)]
pub(crate) enum Image {
    /// A program of this machine.
    Program(ImageProgram),
    /// An image that was loaded.
    Stored(StoredImage),
}

impl Options {
    /// Finds the helper, makes the directory, and tries what the kernel allows.
    ///
    /// # Errors
    /// When there is no helper, or the directory cannot be used.
    pub(crate) fn of(processes: Processes) -> Result<Self, BuildError> {
        let path = processes.helper.or_else(find_helper);
        let helper = Helper::at(path.ok_or(BuildError::NoHelper)?);
        let state = match &processes.data_dir {
            Some(path) => State::at(path),
            None => State::temporary(),
        };
        let state = state.map_err(BuildError::Directory)?;
        ledger::end_all(&state.ledger(), state.id());
        let isolation = match processes.namespaces {
            Namespaces::Auto => Isolation::tried(&helper, &state.empty()),
            Namespaces::Off => Isolation::None("not wanted".to_owned()),
        };
        Ok(Self {
            table: processes.table,
            images: processes.images,
            helper,
            isolation,
            cgroups: own_cgroups(&state),
            state,
            hosts: processes.hosts,
        })
    }

    /// What stands for an image: an entry of the table, or an image that was loaded.
    pub(crate) fn find_image(&self, name: &str) -> Option<Image> {
        if let Some(program) = self.table.find(name) {
            return Some(Image::Program(program.clone()));
        }
        let stored = self.images.as_ref()?.find(name)?;
        Some(Image::Stored(stored))
    }

    /// The same for a fork of the cluster, whose pods have the same uids and directories of their own.
    pub(crate) fn fork(&self) -> Self {
        let mut options = self.clone();
        match State::temporary() {
            Ok(state) => {
                options.cgroups = own_cgroups(&state);
                options.state = state;
            }
            Err(error) => tracing::warn!(%error, "a fork shares the directories of its cluster"),
        }
        options
    }
}

/// The control groups of a runtime, or why it has none.
fn own_cgroups(state: &State) -> Result<Arc<OwnCgroups>, Arc<CgroupError>> {
    let made = OwnCgroups::make(state.id());
    made.map(Arc::new).map_err(Arc::new)
}
