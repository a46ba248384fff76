//! The program that is the helper of containers, and where it is found.

use std::path::{Path, PathBuf};

use crate::helper::HELPER_COMMAND;

/// The program that is the helper.
#[derive(Debug, Clone)]
pub(crate) struct Helper {
    pub(crate) path: PathBuf,
    pub(crate) subcommand: Option<&'static str>,
}

impl Helper {
    /// The helper at a path: `kubewright` has a subcommand for it.
    pub(crate) fn at(path: PathBuf) -> Self {
        let subcommand = is_kubewright(&path).then_some(HELPER_COMMAND);
        Self { path, subcommand }
    }
}

fn is_kubewright(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "kubewright")
}

/// Finds a helper: this program, or one beside it or on the `PATH`.
pub(crate) fn find_helper() -> Option<PathBuf> {
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
