//! Carries out a plan: all of it or nothing, also when the process is killed in the middle.
//!
//! New texts and copies of the old ones are put into `.kubewright/transaction`. Once a journal there says what goes
//! where, files are moved into place one after the other. The journal goes last: whoever finds one puts everything back
//! as it was.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::plan::{Plan, read_text};

/// The folder of everything that is not for the repository.
const STATE: &str = ".kubewright";
const FOLDER: &str = "transaction";
const JOURNAL: &str = "journal.json";

/// What is being done, so that it can be undone.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    steps: Vec<Step>,
    /// Folders that were made, from the outside in.
    folders: Vec<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Step {
    path: PathBuf,
    /// Whether there was a file before; then its copy is in the folder.
    had: bool,
    /// Whether there is one after; it is in the folder until it is in place.
    has: bool,
}

/// Keeps other commands from a project, from when it is read until what was planned in it is carried out: each sees what the one
/// before it has done. Empty for commands that only read, or take long before they write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lock(Arc<Mutex<Option<File>>>);

impl Lock {
    /// Waits until no other command has the project. What one that was killed left half done is put back, and whether there was
    /// such a one is returned.
    ///
    /// # Errors
    /// When a file cannot be put back.
    pub(crate) fn take(root: &Path) -> anyhow::Result<(Self, bool)> {
        let lock = lock(root)?;
        let had = put_back(root)?;
        Ok((Self(Arc::new(Mutex::new(lock))), had))
    }

    /// What is locked, for whoever writes now and lets go of it afterwards.
    fn hand_over(&self) -> Option<File> {
        self.0.lock().take()
    }
}

/// Carries out a plan.
///
/// # Errors
/// When a file cannot be written or was changed since the plan was made; then nothing has changed.
pub(crate) fn commit(plan: &Plan) -> anyhow::Result<()> {
    commit_with(plan, |_| Ok(()))
}

/// As [`commit`]; `before` is called with the number of each step before it is made, and can make it fail.
fn commit_with(plan: &Plan, mut before: impl FnMut(usize) -> io::Result<()>) -> anyhow::Result<()> {
    if plan.changes().is_empty() {
        return Ok(());
    }
    let _lock = match plan.lock().hand_over() {
        Some(held) => Some(held),
        None => lock(plan.root())?,
    };
    put_back(plan.root())?;
    let folder = plan.root().join(STATE).join(FOLDER);
    let staged = stage(plan, &folder);
    let journal = match staged {
        Ok(journal) => journal,
        Err(error) => {
            clear(plan.root());
            return Err(error.context("nothing was written"));
        }
    };
    for (number, step) in journal.steps.iter().enumerate() {
        let done = before(number)
            .map_err(anyhow::Error::from)
            .and_then(|()| make(plan, &folder, number, step));
        if let Err(error) = done {
            undo(plan.root(), &folder, &journal)?;
            clear(plan.root());
            return Err(error.context("nothing was changed"));
        }
    }
    finish(plan, &folder)
}

/// Puts back what a command that was interrupted has changed. Returns whether there was one.
///
/// # Errors
/// When a file cannot be put back.
pub(crate) fn recover(root: &Path) -> anyhow::Result<bool> {
    if !root.join(STATE).join(FOLDER).exists() {
        return Ok(false);
    }
    // A command that is still running has the lock; when it has ended, nothing of it is left to put back.
    let _lock = lock(root)?;
    put_back(root)
}

/// Waits until no other command writes to the project, and lets none until the value is dropped.
fn lock(root: &Path) -> anyhow::Result<Option<File>> {
    // Only a folder of Unix can be opened; one that does not exist yet is nobody else's.
    let Ok(folder) = File::open(root) else {
        return Ok(None);
    };
    match folder.try_lock() {
        Ok(()) => return Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => {
            eprintln!(
                "Another command is writing to {}; waiting for it.",
                root.display()
            );
        }
        // Some file systems have no locks; there it is as it was without.
        Err(TryLockError::Error(_)) => return Ok(None),
    }
    folder
        .lock()
        .with_context(|| format!("{} cannot be locked", root.display()))?;
    Ok(Some(folder))
}

/// Puts back what the journal says, if there is one, and clears away what is left.
fn put_back(root: &Path) -> anyhow::Result<bool> {
    let folder = root.join(STATE).join(FOLDER);
    let text = read_text(&folder.join(JOURNAL))?;
    if let Some(text) = &text {
        let journal = serde_json::from_str(text)
            .with_context(|| format!("{} is damaged", folder.join(JOURNAL).display()))?;
        undo(root, &folder, &journal)?;
    }
    if folder.exists() {
        clear(root);
    }
    Ok(text.is_some())
}

/// Puts everything that is needed into the folder, and the journal at last.
fn stage(plan: &Plan, folder: &Path) -> anyhow::Result<Journal> {
    let cannot = || format!("{} cannot be written to", plan.root().display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let mut journal = Journal::default();
    for (number, (path, change)) in plan.changes().iter().enumerate() {
        let target = plan.root().join(path);
        if let Some(before) = change.before() {
            fs::write(folder.join(format!("{number}.old")), before).with_context(cannot)?;
        }
        if let Some(after) = change.after() {
            let staged = folder.join(format!("{number}.new"));
            fs::write(&staged, after).with_context(cannot)?;
            if let Ok(metadata) = fs::metadata(&target) {
                fs::set_permissions(&staged, metadata.permissions()).with_context(cannot)?;
            }
        }
        journal
            .folders
            .extend(missing_folders(plan.root(), path, &journal.folders));
        journal.steps.push(Step {
            path: path.clone(),
            had: change.before().is_some(),
            has: change.after().is_some(),
        });
    }
    let text = serde_json::to_string(&journal)?;
    let draft = folder.join("journal.draft");
    let mut file = File::create(&draft).with_context(cannot)?;
    file.write_all(text.as_bytes()).with_context(cannot)?;
    file.sync_all().with_context(cannot)?;
    fs::rename(draft, folder.join(JOURNAL)).with_context(cannot)?;
    Ok(journal)
}

/// The folders above a file that have to be made, from the outside in.
fn missing_folders(root: &Path, path: &Path, known: &[PathBuf]) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = above
        .take_while(|folder| !folder.as_os_str().is_empty())
        .filter(|folder| !root.join(folder).exists() && !known.iter().any(|k| k == folder))
        .map(Path::to_path_buf)
        .collect();
    missing.reverse();
    missing
}

/// Makes one step, if the file is still what the plan was made for.
fn make(plan: &Plan, folder: &Path, number: usize, step: &Step) -> anyhow::Result<()> {
    let target = plan.root().join(&step.path);
    let change = plan.changes().get(&step.path);
    let before = change.and_then(|change| change.before());
    if read_text(&target)?.as_deref() != before {
        bail!("{} was changed meanwhile", step.path.display());
    }
    let cannot = || format!("{} cannot be written", step.path.display());
    if !step.has {
        return fs::remove_file(&target).with_context(cannot);
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).with_context(cannot)?;
    }
    fs::rename(folder.join(format!("{number}.new")), &target).with_context(cannot)
}

/// Puts back what was done of a journal.
fn undo(root: &Path, folder: &Path, journal: &Journal) -> anyhow::Result<()> {
    for (number, step) in journal.steps.iter().enumerate().rev() {
        let target = root.join(&step.path);
        let done = if step.has {
            // It left the folder when it was put in place.
            !folder.join(format!("{number}.new")).exists()
        } else {
            !target.exists()
        };
        if !done {
            continue;
        }
        let cannot = || format!("{} cannot be put back", target.display());
        if step.had {
            fs::copy(folder.join(format!("{number}.old")), &target).with_context(cannot)?;
        } else {
            ignore_missing(fs::remove_file(&target)).with_context(cannot)?;
        }
    }
    for made in journal.folders.iter().rev() {
        // One that is not empty has something of somebody else in it.
        let _ = fs::remove_dir(root.join(made));
    }
    Ok(())
}

/// Takes the journal away, which makes it final, then what is left over.
fn finish(plan: &Plan, folder: &Path) -> anyhow::Result<()> {
    fs::remove_file(folder.join(JOURNAL)).context("the journal cannot be removed")?;
    clear(plan.root());
    let deleted = plan
        .changes()
        .iter()
        .filter(|(_, change)| change.after().is_none());
    for (path, _) in deleted {
        for parent in path.ancestors().skip(1) {
            // Folders go when their last file does; the first that stays has others in it.
            if parent.as_os_str().is_empty() || fs::remove_dir(plan.root().join(parent)).is_err() {
                break;
            }
        }
    }
    Ok(())
}

/// Removes the folder, and the one around it if nothing else is there. What stays is removed next time.
fn clear(root: &Path) {
    let _ = fs::remove_dir_all(root.join(STATE).join(FOLDER));
    let _ = fs::remove_dir(root.join(STATE));
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
