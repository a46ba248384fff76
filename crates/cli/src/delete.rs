//! `kubewright delete`: the way back from `create`.

use std::path::Path;
use std::process::Command;

use anyhow::bail;
use clap::{ArgAction, Args, Subcommand};
use kubewright_manifests::project::Resource;

use crate::create::{self, Kind};
use crate::folder::{Folder, Place};
use crate::generate;
use crate::scaffold::modules;
use crate::scaffold::plan::{Change, Plan};
use crate::scaffold::site::Site;
use crate::scaffold::templates::Templates;
use crate::scaffold::writing::{Writing, Written};

/// Remove a kind from a project
#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Api(DeleteApi),
    Version(DeleteVersion),
}

/// Remove a version of a kind that has others
///
/// The controllers of the kind stay. Files that still name the type of the version are listed, and nothing is deleted, unless
/// --force is given.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kubewright delete version --group webapp --version v1alpha1 --kind Guestbook --dry-run")]
struct DeleteVersion {
    #[command(flatten)]
    what: Deletion,
}

/// Remove a kind: its type, its controllers, its webhooks, and the lines that name them
///
/// What was created and not changed goes at once. Files with changes that no commit has are kept, unless --force is given. Of a
/// kind that has other versions only the given one goes, as with delete version.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kubewright delete api --group webapp --version v1 --kind Guestbook --dry-run")]
struct DeleteApi {
    #[command(flatten)]
    what: Deletion,
}

/// What goes, and how.
#[derive(Debug, Args)]
struct Deletion {
    #[command(flatten)]
    kind: Kind,

    /// Build the program and generate config/ afterwards
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    make: bool,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl Delete {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Api(api) => api.what.run(Scope::Kind),
            What::Version(version) => version.what.run(Scope::Version),
        }
    }
}

/// What people asked to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// A kind, if the version is its last.
    Kind,
    /// A version of a kind that stays.
    Version,
}

impl Deletion {
    fn run(self, scope: Scope) -> anyhow::Result<()> {
        self.kind.check()?;
        let mut folder = self.place.open_to_change()?;
        let kind = &self.kind;
        let found = folder.project.find(&kind.group, &kind.version, &kind.kind);
        let Some(resource) = found.cloned() else {
            println!("{} is not there; nothing was written.", kind.kind);
            return Ok(());
        };
        let heir = heir(&folder, &resource);
        if scope == Scope::Version && heir.is_none() {
            bail!(
                "{} is the only version of {}; remove the kind with: kubewright delete api {}",
                kind.version,
                kind.kind,
                kind.flags()
            );
        }
        let mut plan = folder.plan()?;
        match &heir {
            Some(heir) => self.remove_version(&mut folder, &resource, heir, &mut plan)?,
            None => remove(&folder, &resource, &mut plan)?,
        }
        folder.project.resources.retain(|other| {
            (&other.group, &other.version, &other.kind)
                != (&resource.group, &resource.version, &resource.kind)
        });
        folder.save(&mut plan)?;
        if !self.writing.force {
            check_kept(&folder, &resource, &plan)?;
        }
        if self.writing.carry_out(&plan)? == Written::Something {
            if self.make {
                generate::after_scaffold(&folder)?;
            }
            println!(
                "\nNext: kubewright generate; on a cluster that has the kind, kubewright uninstall removes it"
            );
        }
        Ok(())
    }

    /// Plans that a version goes and its controllers become another's.
    fn remove_version(
        &self,
        folder: &mut Folder,
        resource: &Resource,
        heir: &Resource,
        plan: &mut Plan,
    ) -> anyhow::Result<()> {
        let site = Site::api(&folder.project, resource);
        if plan.read(&site.file())?.is_some() {
            site.remove(plan)?;
        }
        if resource.webhooks.is_some() {
            Site::webhook(&folder.project, resource).remove(plan)?;
            remove_webhook_module(plan)?;
        }
        if !self.writing.force {
            check_unnamed(folder, &site, plan)?;
        }
        let is_last = others(folder, resource).count() == 1;
        let heir_site = Site::api(&folder.project, heir);
        if is_last && plan.read(&heir_site.file())?.is_some() {
            // Something has to be stored. Objects that are stored as the version that goes have to be written again before.
            plan.edit(heir_site.file(), |text| {
                text.replace("    storage = false,\n", "")
            })?;
        }
        let found = folder.find_mut(&heir.group, &heir.version, &heir.kind);
        if let Some(heir) = found {
            heir.controller |= resource.controller;
            heir.controllers
                .extend(resource.controllers.iter().cloned());
        }
        Ok(())
    }
}

/// The other versions of a kind that are this project's own.
fn others<'a>(folder: &'a Folder, gone: &'a Resource) -> impl Iterator<Item = &'a Resource> {
    folder.project.resources.iter().filter(|other| {
        other.group == gone.group && other.kind == gone.kind && other.version != gone.version
    })
}

/// The version that has the controllers of a kind when another goes.
fn heir(folder: &Folder, gone: &Resource) -> Option<Resource> {
    others(folder, gone).last().cloned()
}

/// Refuses to delete a type that code which stays still names.
fn check_unnamed(folder: &Folder, site: &Site, plan: &Plan) -> anyhow::Result<()> {
    let path = site.path();
    let mut naming = Vec::new();
    walk(&folder.root.join("src"), &mut |file, text| {
        let file = file.strip_prefix(&folder.root).unwrap_or(file);
        let goes = matches!(plan.changes().get(file), Some(Change::Delete { .. }));
        if !goes && text.contains(&path) {
            naming.push(format!("  {}", file.display()));
        }
    })?;
    if naming.is_empty() {
        return Ok(());
    }
    naming.sort();
    bail!(
        "these files name {path}, which would be gone:\n{}\n\
         Nothing was deleted. Have them use another version first, or delete it all the same with --force.",
        naming.join("\n")
    );
}

/// Calls a function with every Rust file below a folder.
fn walk(folder: &Path, see: &mut dyn FnMut(&Path, &str)) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            walk(&path, see)?;
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "rs") {
            // What is not text names nothing.
            if let Ok(text) = std::fs::read_to_string(&path) {
                see(&path, &text);
            }
        }
    }
    Ok(())
}

/// Plans that all code of a kind goes.
fn remove(folder: &Folder, resource: &Resource, plan: &mut Plan) -> anyhow::Result<()> {
    let project = &folder.project;
    for name in resource.controller_names() {
        let site = Site::controller(project, resource, &name);
        plan.delete(site.beside("tests.rs"))?;
        plan.delete(site.beside("simulation.rs"))?;
        site.remove(plan)?;
    }
    let site = Site::api(project, resource);
    if plan.read(&site.file())?.is_some() {
        site.remove(plan)?;
    }
    if resource.webhooks.is_some() {
        Site::webhook(project, resource).remove(plan)?;
        remove_webhook_module(plan)?;
    }
    Ok(())
}

/// The module of webhooks goes with the last of them.
fn remove_webhook_module(plan: &mut Plan) -> anyhow::Result<()> {
    let base = Path::new("src/webhook.rs");
    if plan
        .read(base)?
        .is_some_and(|text| modules::is_empty(plan.bare(&text)))
    {
        plan.delete(base)?;
        plan.edit("src/main.rs", modules::without_webhooks)?;
    }
    Ok(())
}

/// Refuses to delete work that is nowhere else.
fn check_kept(folder: &Folder, resource: &Resource, plan: &Plan) -> anyhow::Result<()> {
    let scaffolded = create::scaffolded(Templates::current(), &folder.project, resource)?;
    let copies = copies(folder, resource, plan)?;
    let mut lost = Vec::new();
    for (path, change) in plan.changes() {
        let Change::Delete { before } = change else {
            continue;
        };
        let before = plan.bare(before);
        let as_made = scaffolded
            .iter()
            .any(|files| files.get(path).is_some_and(|text| text == before));
        let is_copy = copies.contains(&create::version::anonymous(before, &resource.version));
        let as_made = as_made || is_copy || modules::is_chain(before);
        if !as_made && !is_committed(&folder.root, path) {
            lost.push(format!("  {}", path.display()));
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    bail!(
        "these files have changes that no commit has:\n{}\n\
         Nothing was deleted. Commit them, or delete them all the same with --force.",
        lost.join("\n")
    );
}

/// The code of the other versions of a kind, without what differs when one is a copy of another.
fn copies(folder: &Folder, resource: &Resource, plan: &Plan) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for other in others(folder, resource) {
        let file = Site::api(&folder.project, other).file();
        if let Some(text) = plan.read(&file)? {
            let text = plan.bare(&text);
            found.push(create::version::anonymous(text, &other.version));
        }
    }
    Ok(found)
}

/// Whether the file is in the last commit as it is now.
fn is_committed(root: &Path, path: &Path) -> bool {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let command = command
            .current_dir(root)
            .args(arguments)
            .arg("--")
            .arg(path);
        command
            .output()
            .ok()
            .filter(|output| output.status.success())
    };
    let tracked = git(&["ls-files", "--error-unmatch"]).is_some();
    let changed = git(&["status", "--porcelain"]).is_none_or(|output| !output.stdout.is_empty());
    tracked && !changed
}
