//! Compares the generated files of a project with what its program says.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{INSTALL, LayoutError, Settings, files, is_generated};
use crate::Inventory;
use crate::project::{Project, ProjectError};

/// Where generated files are.
const FOLDERS: [&str; 3] = ["config", "dist", "docs"];
/// Deeper than any generated file.
const MAX_DEPTH: usize = 6;

/// Why a project cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StaleError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Its `PROJECT` cannot be used.
    #[error("PROJECT cannot be used")]
    Project(#[source] Box<ProjectError>),
    /// Its files cannot be generated.
    #[error("nothing can be generated")]
    Layout(#[source] Box<LayoutError>),
}

/// Files below `root` that are not what a program with this inventory would generate. Those that do not say that they are
/// generated are people's own and count as they should be.
///
/// # Errors
/// When the project cannot be read.
pub fn stale(root: &Path, inventory: &Inventory) -> Result<Vec<PathBuf>, StaleError> {
    let file = root.join("PROJECT");
    let text = read(&file)?.unwrap_or_default();
    let project = Project::parse(&text).map_err(|source| StaleError::Project(Box::new(source)))?;
    let wanted = expected(root, &project, inventory)?;
    let mut stale: Vec<PathBuf> = generated_files(root)?
        .into_iter()
        .filter(|path| !wanted.contains_key(path))
        .collect();
    for (path, text) in wanted {
        let present = read(&root.join(&path))?;
        let is_stale = present.is_none_or(|present| is_generated(&present) && present != text);
        if is_stale {
            stale.push(path);
        }
    }
    Ok(stale)
}

/// What the generated files of the project at `root` are compared with. The manager's image in `dist/install.yaml` is the one that
/// the file names: it is chosen when the file is written, and often once for each release.
///
/// # Errors
/// When a file cannot be read, or nothing can be generated.
pub fn expected(
    root: &Path,
    project: &Project,
    inventory: &Inventory,
) -> Result<BTreeMap<PathBuf, String>, StaleError> {
    let generate = |settings: Settings| {
        files(project, inventory, &settings).map_err(|source| StaleError::Layout(Box::new(source)))
    };
    let mut wanted = generate(Settings::default())?;
    let install = PathBuf::from(INSTALL);
    let present = read(&root.join(&install))?;
    if let Some(present) = present
        && wanted.get(&install) != Some(&present)
        && let Some(image) = image(&present)
    {
        let chosen = generate(Settings::image(Some(image)))?.remove(&install);
        wanted.extend(chosen.map(|text| (install, text)));
    }
    Ok(wanted)
}

/// The manager's image in a file with everything that is deployed.
fn image(install: &str) -> Option<String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(install).ok()?;
    let deployment = objects.iter().find(|it| it["kind"] == "Deployment")?;
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    let mut containers = containers.as_array()?.iter();
    let manager = containers.find(|container| container["name"] == "manager")?;
    manager["image"].as_str().map(str::to_owned)
}

/// All files of a project that say that they are generated, by path from its root.
///
/// # Errors
/// When a file cannot be read.
pub fn generated_files(root: &Path) -> Result<Vec<PathBuf>, StaleError> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        walk(root, Path::new(folder), MAX_DEPTH, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn walk(
    root: &Path,
    folder: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> Result<(), StaleError> {
    let full = root.join(folder);
    let entries = match fs::read_dir(&full) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(StaleError::Read { path: full, source }),
    };
    for entry in entries {
        let entry = entry.map_err(|source| StaleError::Read {
            path: full.clone(),
            source,
        })?;
        let path = folder.join(entry.file_name());
        // Links lead out of the project, or in circles.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 0 {
            walk(root, &path, depth - 1, found)?;
        } else if kind.is_file() && read(&root.join(&path))?.is_some_and(|text| is_generated(&text))
        {
            found.push(path);
        }
    }
    Ok(())
}

/// The text of a file; none if it is not there or no text.
fn read(path: &Path) -> Result<Option<String>, StaleError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidData
            ) =>
        {
            Ok(None)
        }
        Err(source) => Err(StaleError::Read {
            path: path.to_path_buf(),
            source,
        }),
    }
}
