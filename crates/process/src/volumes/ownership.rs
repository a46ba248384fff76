//! Whom the files of volumes belong to: root's privilege, without which everything is the user's.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::path::Path;

/// Whom the files of a pod's volumes belong to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owners {
    /// The group that all containers of the pod are in, if files can be given away.
    group: Option<u32>,
    gives: Gives,
}

/// Whether files can be given to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Gives {
    Yes,
    #[default]
    No,
}

impl Owners {
    /// For a pod with this `fsGroup`. Whoever is not root gives nothing away.
    pub(crate) fn new(fs_group: Option<i64>) -> Self {
        if !nix::unistd::geteuid().is_root() {
            return Self::default();
        }
        Self {
            group: fs_group.and_then(|group| u32::try_from(group).ok()),
            gives: Gives::Yes,
        }
    }

    /// Permissions that files have besides their own: the group may read them.
    pub(super) fn more_mode(&self) -> u32 {
        if self.group.is_some() { 0o440 } else { 0 }
    }

    /// Gives a file to its owner and to the group.
    pub(super) fn give_file(&self, path: &Path, owner: Option<i64>) -> io::Result<()> {
        let owner = owner.and_then(|owner| u32::try_from(owner).ok());
        if self.gives == Gives::No || (owner.is_none() && self.group.is_none()) {
            return Ok(());
        }
        lchown(path, owner, self.group)
    }

    /// Gives a directory and all below it to the group, which new files there belong to as well.
    ///
    /// Mirrors `volume.SetVolumeOwnership`.
    pub(super) fn give_directories(&self, path: &Path) -> io::Result<()> {
        let Some(group) = self.group else {
            return Ok(());
        };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.give_directories(&entry.path())?;
            }
        }
        lchown(path, None, Some(group))?;
        let mode = fs::symlink_metadata(path)?.permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o2070))
    }
}
