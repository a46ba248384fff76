//! What a runtime was made with.

use std::sync::Arc;

use crate::cgroup::OwnCgroups;
use crate::helper_program::Helper;
use crate::images::{ImageStore, StoredImage};
use crate::isolation::Isolation;
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
    pub(crate) cgroups: Result<Arc<OwnCgroups>, String>,
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
                options.cgroups = OwnCgroups::make(state.id()).map(Arc::new);
                options.state = state;
            }
            Err(error) => tracing::warn!(%error, "a fork shares the directories of its cluster"),
        }
        options
    }
}
