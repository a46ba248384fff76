//! What a command is about to do to the files of a project. Nothing here writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use similar::TextDiff;

use super::transaction::Lock;

/// Files of a project are text of people; larger ones are none of ours.
const MAX_BYTES: u64 = 16 << 20;

/// The changes of one command, by path from the root of the project.
#[derive(Debug)]
pub(crate) struct Plan {
    root: PathBuf,
    changes: BTreeMap<PathBuf, Change>,
    /// Files that are somebody's own and in the way.
    conflicts: Vec<PathBuf>,
    /// What Rust files that are created begin with.
    header: String,
    /// What keeps other commands away until it is carried out.
    lock: Lock,
}

/// What becomes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Create { after: String },
    Modify { before: String, after: String },
    Delete { before: String },
}

/// What to do about a file that is there already and is not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is somebody's own: say so and write nothing at all.
    Refuse,
    /// It is ours to write again.
    Replace,
}

impl Change {
    pub(crate) fn before(&self) -> Option<&str> {
        match self {
            Self::Create { .. } => None,
            Self::Modify { before, .. } | Self::Delete { before } => Some(before),
        }
    }

    pub(crate) fn after(&self) -> Option<&str> {
        match self {
            Self::Delete { .. } => None,
            Self::Create { after } | Self::Modify { after, .. } => Some(after),
        }
    }

    fn of(before: Option<String>, after: Option<String>) -> Option<Self> {
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(Self::Create { after }),
            (Some(before), None) => Some(Self::Delete { before }),
            (Some(before), Some(after)) => {
                (before != after).then_some(Self::Modify { before, after })
            }
        }
    }
}

impl Plan {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            changes: BTreeMap::new(),
            conflicts: Vec::new(),
            header: String::new(),
            lock: Lock::default(),
        }
    }

    /// A plan for an empty folder that is nowhere: it can be read, and not carried out.
    pub(crate) fn of_nothing() -> Self {
        Self::new("")
    }

    /// With a lock that is held since before the project was read.
    pub(crate) fn held_by(mut self, lock: &Lock) -> Self {
        self.lock = lock.clone();
        self
    }

    pub(super) fn lock(&self) -> &Lock {
        &self.lock
    }

    /// With a header for Rust files that are created. A line without text keeps it apart from what follows.
    pub(crate) fn header(mut self, header: &str) -> Self {
        self.header = match header.trim() {
            "" => String::new(),
            header => format!("{header}\n\n"),
        };
        self
    }

    /// The text of a new Rust file, with the header of the project.
    pub(crate) fn headed(&self, text: impl AsRef<str>) -> String {
        let text = text.as_ref();
        if text.starts_with(&self.header) {
            text.to_owned()
        } else {
            format!("{}{text}", self.header)
        }
    }

    /// The text of a Rust file without the header, if it has it.
    pub(crate) fn bare<'a>(&self, text: &'a str) -> &'a str {
        text.strip_prefix(&self.header).unwrap_or(text)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn changes(&self) -> &BTreeMap<PathBuf, Change> {
        &self.changes
    }

    pub(crate) fn conflicts(&self) -> &[PathBuf] {
        &self.conflicts
    }

    /// The text of a file as it will be.
    pub(crate) fn read(&self, path: &Path) -> anyhow::Result<Option<String>> {
        match self.changes.get(path) {
            Some(change) => Ok(change.after().map(str::to_owned)),
            None => self.on_disk(path),
        }
    }

    /// Plans a file of this text.
    pub(crate) fn write(
        &mut self,
        path: impl Into<PathBuf>,
        text: impl Into<String>,
        existing: Existing,
    ) -> anyhow::Result<()> {
        let (path, text) = (path.into(), text.into());
        let present = self.read(&path)?;
        if existing == Existing::Refuse && present.is_some_and(|present| present != text) {
            self.conflicts.push(path);
            return Ok(());
        }
        self.set(path, Some(text))
    }

    /// Plans that a file goes; one that is not there has gone already.
    pub(crate) fn delete(&mut self, path: impl Into<PathBuf>) -> anyhow::Result<()> {
        self.set(path.into(), None)
    }

    /// Plans a change of a file that has to be there.
    pub(crate) fn edit(
        &mut self,
        path: impl Into<PathBuf>,
        change: impl FnOnce(&str) -> String,
    ) -> anyhow::Result<()> {
        let path = path.into();
        let Some(present) = self.read(&path)? else {
            bail!("{} is missing; it is part of every project", path.display());
        };
        let changed = change(&present);
        self.set(path, Some(changed))
    }

    fn set(&mut self, path: PathBuf, after: Option<String>) -> anyhow::Result<()> {
        let before = self.on_disk(&path)?;
        match Change::of(before, after) {
            Some(change) => drop(self.changes.insert(path, change)),
            None => drop(self.changes.remove(&path)),
        }
        Ok(())
    }

    fn on_disk(&self, path: &Path) -> anyhow::Result<Option<String>> {
        let inside = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !inside {
            bail!("{} is not inside the project", path.display());
        }
        if self.root.as_os_str().is_empty() {
            return Ok(None);
        }
        read_text(&self.root.join(path))
    }

    /// What the changes are, as a diff that `patch` understands.
    pub(crate) fn diff(&self) -> String {
        let mut text = String::new();
        for (path, change) in &self.changes {
            let (before, after) = (change.before(), change.after());
            let name = |side: &str, there: bool| {
                if there {
                    format!("{side}/{}", path.display())
                } else {
                    "/dev/null".to_owned()
                }
            };
            let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
            let mut unified = diff.unified_diff();
            let header = unified.header(&name("a", before.is_some()), &name("b", after.is_some()));
            text.push_str(&header.to_string());
        }
        text
    }

    /// A line for each change.
    pub(crate) fn summary(&self, verbs: Verbs) -> String {
        let mut text = String::new();
        for (path, change) in &self.changes {
            let verb = match change {
                Change::Create { .. } => verbs.create,
                Change::Modify { .. } => verbs.modify,
                Change::Delete { .. } => verbs.delete,
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {verb} {}", path.display());
        }
        text
    }
}

/// The words that a summary of changes uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verbs {
    create: &'static str,
    modify: &'static str,
    delete: &'static str,
}

impl Verbs {
    pub(crate) const DONE: Self = Self {
        create: "created ",
        modify: "changed ",
        delete: "deleted ",
    };
    pub(crate) const PLANNED: Self = Self {
        create: "would create",
        modify: "would change",
        delete: "would delete",
    };
}

/// The text of a file, if there is one.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<Option<String>> {
    let size = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => bail!("{} is a folder, not a file", path.display()),
        Ok(metadata) => metadata.len(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("{} cannot be read", path.display())),
    };
    if size > MAX_BYTES {
        bail!("{} is larger than {MAX_BYTES} bytes", path.display());
    }
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> (tempfile::TempDir, Plan) {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let plan = Plan::new(folder.path());
        (folder, plan)
    }

    #[test]
    fn file_that_is_as_it_should_be_is_no_change() {
        let (folder, mut plan) = plan();
        fs::write(folder.path().join("a"), "same").expect("it can be written");
        plan.write("a", "same", Existing::Refuse)
            .expect("it is planned");
        plan.delete("missing").expect("it is planned");
        assert!(plan.changes().is_empty() && plan.conflicts().is_empty());
    }

    #[test]
    fn own_file_is_a_conflict_unless_it_may_be_replaced() {
        let (folder, mut plan) = plan();
        fs::write(folder.path().join("a"), "mine").expect("it can be written");
        plan.write("a", "ours", Existing::Refuse)
            .expect("it is planned");
        assert_eq!(plan.conflicts(), [PathBuf::from("a")]);
        plan.write("a", "ours", Existing::Replace)
            .expect("it is planned");
        let change = Change::Modify {
            before: "mine".into(),
            after: "ours".into(),
        };
        assert_eq!(plan.changes()[Path::new("a")], change);
    }

    #[test]
    fn changes_of_one_file_add_up_and_cancel_out() {
        let (_folder, mut plan) = plan();
        plan.write("a/b", "1", Existing::Refuse)
            .expect("it is planned");
        plan.edit("a/b", |text| text.to_owned() + "2")
            .expect("it is planned");
        assert_eq!(
            plan.read(Path::new("a/b")).expect("it reads").as_deref(),
            Some("12")
        );
        assert!(
            plan.diff().contains("--- /dev/null\n+++ b/a/b\n"),
            "{}",
            plan.diff()
        );
        plan.delete("a/b").expect("it is planned");
        assert!(plan.changes().is_empty());
    }

    #[test]
    fn paths_outside_are_refused() {
        let (_folder, mut plan) = plan();
        for path in ["../a", "/etc/passwd", "a/../../b"] {
            assert!(plan.write(path, "", Existing::Replace).is_err(), "{path}");
        }
    }
}
