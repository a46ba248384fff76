//! The folder of a project: found from anywhere inside, with its `PROJECT`.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use kubewright_manifests::project::{Project, Resource};

use crate::scaffold::header;
use crate::scaffold::plan::{Existing, Plan, read_text};
use crate::scaffold::transaction::{self, Lock};

/// The file that makes a folder a project.
pub(crate) const FILE: &str = "PROJECT";

/// Which project a command is about.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct Place {
    /// The project's folder; without it the one around the current folder
    #[arg(long = "project", value_name = "DIR", global = true)]
    pub(crate) folder: Option<PathBuf>,
}

/// A project and where it is.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) root: PathBuf,
    pub(crate) project: Project,
    lock: Lock,
}

impl Place {
    /// Opens the project. What a command that was killed left half done is put back first.
    ///
    /// # Errors
    /// When the folder is not in a project, or its `PROJECT` cannot be read.
    pub(crate) fn open(&self) -> anyhow::Result<Folder> {
        let root = self.root()?;
        let recovered = transaction::recover(&root)?;
        Self::read(root, recovered, Lock::default())
    }

    /// Opens the project for a command that changes it: others wait until it has.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_to_change(&self) -> anyhow::Result<Folder> {
        let root = self.root()?;
        let (lock, recovered) = Lock::take(&root)?;
        Self::read(root, recovered, lock)
    }

    fn read(root: PathBuf, recovered: bool, lock: Lock) -> anyhow::Result<Folder> {
        if recovered {
            eprintln!("An earlier command was interrupted; what it had written was put back.");
        }
        let file = root.join(FILE);
        let text = read_text(&file)?.with_context(|| format!("{} is gone", file.display()))?;
        let project = Project::parse(&text).with_context(|| {
            format!(
                "{} cannot be used; fix it, or restore it from your version control",
                file.display()
            )
        })?;
        Ok(Folder {
            root,
            project,
            lock,
        })
    }

    fn root(&self) -> anyhow::Result<PathBuf> {
        let missing = "Make one with: kubewright init --domain example.com";
        if let Some(folder) = &self.folder {
            if !folder.join(FILE).is_file() {
                bail!(
                    "{} is not a project: it has no file {FILE}. {missing}",
                    folder.display()
                );
            }
            return Ok(std::path::absolute(folder)?);
        }
        let current = env::current_dir().context("the current folder cannot be found")?;
        let found = current
            .ancestors()
            .find(|folder| folder.join(FILE).is_file());
        match found {
            Some(root) => Ok(root.to_path_buf()),
            None => {
                bail!("this is not a project: there is no file {FILE} here or above. {missing}")
            }
        }
    }
}

impl Folder {
    /// A plan in this folder, with the header that its Rust files have.
    ///
    /// # Errors
    /// When the header cannot be read.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        let header = read_text(&self.root.join(header::FILE))?;
        let plan = Plan::new(&self.root).header(&header.unwrap_or_default());
        Ok(plan.held_by(&self.lock))
    }

    /// Plans that `PROJECT` is written again.
    pub(crate) fn save(&self, plan: &mut Plan) -> anyhow::Result<()> {
        plan.write(FILE, self.project.to_text(), Existing::Replace)
    }

    /// The resource, to be changed.
    pub(crate) fn find_mut(
        &mut self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<&mut Resource> {
        let mut all = self.project.resources.iter_mut();
        all.find(|r| (&*r.group, &*r.version, &*r.kind) == (group, version, kind))
    }

    /// A path as people read it from where they are.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let current = env::current_dir().unwrap_or_default();
        let full = self.root.join(path);
        full.strip_prefix(current)
            .unwrap_or(&full)
            .display()
            .to_string()
    }
}
