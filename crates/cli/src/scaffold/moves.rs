//! Moves code of kinds from where it is to where it belongs, with what lies below it and the paths that lead to it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kubewright_manifests::project::{Project, Resource};

use super::plan::{Existing, Plan};
use super::site::Site;

/// Deeper than sources of people.
const MAX_DEPTH: usize = 16;
/// More than a project has.
const MAX_FILES: usize = 20_000;

/// Code that moves: where it is, where it goes, and its text.
struct Move {
    from: Site,
    to: Site,
    code: String,
    /// Files in the folder of its own: tests and modules below it.
    below: Vec<(PathBuf, String)>,
}

/// Plans that code moves, and that everything finds it there.
///
/// # Errors
/// When a file cannot be read, or is in the way.
pub(crate) fn carry(
    sites: impl IntoIterator<Item = (Site, Site)>,
    plan: &mut Plan,
) -> anyhow::Result<()> {
    let moves = found(sites, plan)?;
    // All leave before the first arrives: a group may be called as a kind was.
    for it in &moves {
        for (path, _) in &it.below {
            plan.delete(it.from.beside("").join(path))?;
        }
        it.from.remove(plan)?;
    }
    for it in &moves {
        it.to.add(plan, it.code.clone(), Existing::Refuse)?;
        for (path, text) in &it.below {
            plan.write(it.to.beside("").join(path), text, Existing::Refuse)?;
        }
    }
    rename(&moves, plan)
}

/// Everywhere a kind has code.
pub(crate) fn sites(project: &Project, resource: &Resource) -> Vec<Site> {
    let mut sites = vec![
        Site::api(project, resource),
        Site::webhook(project, resource),
    ];
    let controllers = resource.controller_names().into_iter();
    sites.extend(controllers.map(|name| Site::controller(project, resource, &name)));
    sites
}

fn found(sites: impl IntoIterator<Item = (Site, Site)>, plan: &Plan) -> anyhow::Result<Vec<Move>> {
    let mut moves = Vec::new();
    for (from, to) in sites.into_iter().filter(|(from, to)| from != to) {
        // A kind of others has no type here, and a file that people have put elsewhere is theirs.
        let Some(code) = plan.read(&from.file())? else {
            continue;
        };
        let mut below = Vec::new();
        let inside = plan.root().join(from.beside(""));
        for path in sources(&inside)? {
            let text = plan.read(&from.beside("").join(&path))?;
            below.push((path, text.unwrap_or_default()));
        }
        moves.push(Move {
            from,
            to,
            code,
            below,
        });
    }
    Ok(moves)
}

/// Plans that paths of Rust which lead to code that moves lead to where it is.
fn rename(moves: &[Move], plan: &mut Plan) -> anyhow::Result<()> {
    for file in rust_files(plan)? {
        plan.edit(&file, |text| {
            let renamed = moves.iter().fold(text.to_owned(), |text, it| {
                replace_path(&text, &it.from.path(), &it.to.path())
            });
            renamed.replace(MOVED, "")
        })?;
    }
    Ok(())
}

/// The Rust files of a project as they will be.
///
/// # Errors
/// When the folder of sources cannot be read.
pub(crate) fn rust_files(plan: &Plan) -> anyhow::Result<Vec<PathBuf>> {
    let source = Path::new("src");
    let on_disk = sources(&plan.root().join(source))?;
    let mut files: Vec<PathBuf> = on_disk.into_iter().map(|path| source.join(path)).collect();
    files.extend(plan.changes().keys().cloned());
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    files.dedup();
    let mut there = Vec::new();
    for file in files {
        if plan.read(&file)?.is_some() {
            there.push(file);
        }
    }
    Ok(there)
}

/// Keeps a path that was replaced from being replaced again. No source has it.
const MOVED: &str = "\u{1}";

/// The text with another path of Rust, where this one ends or goes on below.
fn replace_path(text: &str, from: &str, to: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(place) = rest.find(from) {
        let (before, found) = rest.split_at(place);
        rest = &found[from.len()..];
        out.push_str(before);
        let goes_on = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if goes_on {
            out.push_str(from)
        } else {
            // The mark stands inside the word that all such paths begin with.
            out.push_str(&to.replacen("crate", &format!("cr{MOVED}ate"), 1))
        }
    }
    out + rest
}

/// The files below a folder, with paths from there. None if there is no folder.
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(folder, Path::new(""), MAX_DEPTH, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(
    folder: &Path,
    below: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let place = folder.join(below);
    if !place.is_dir() {
        return Ok(());
    }
    if depth == 0 || found.len() > MAX_FILES {
        bail!("{} has more in it than sources have", folder.display());
    }
    let cannot = || format!("{} cannot be read", place.display());
    for entry in fs::read_dir(&place).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = below.join(entry.file_name());
        if entry.file_type().with_context(cannot)?.is_dir() {
            collect(folder, &path, depth - 1, found)?
        } else {
            found.push(path)
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_paths_are_replaced() {
        let (from, to) = ("crate::api::v1::captain", "crate::api::crew::v1::captain");
        for (text, expected) in [
            (
                "use crate::api::v1::captain::Captain;",
                "use crate::api::crew::v1::captain::Captain;",
            ),
            (
                "use crate::api::v1::captains::All;",
                "use crate::api::v1::captains::All;",
            ),
            (
                "use crate::api::v1::captain;\nuse crate::api::v1::captain as c;",
                "use crate::api::crew::v1::captain;\nuse crate::api::crew::v1::captain as c;",
            ),
        ] {
            let once = replace_path(text, from, to);
            assert_eq!(once.replace(MOVED, ""), expected);
            // What leads to its new place is not taken for the old one of another.
            let twice = replace_path(&once, to, "crate::elsewhere");
            assert_eq!(twice.replace(MOVED, ""), expected);
        }
    }
}
