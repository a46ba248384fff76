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
}

/// Remove a kind: its type, its controllers, its webhooks, and the lines that name them
///
/// What was created and not changed goes at once. Files with changes that no commit has are kept, unless --force is given.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kubewright delete api --group webapp --version v1 --kind Guestbook --dry-run")]
struct DeleteApi {
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
        let What::Api(api) = self.what;
        api.run()
    }
}

impl DeleteApi {
    fn run(self) -> anyhow::Result<()> {
        self.kind.check()?;
        let mut folder = self.place.open()?;
        let kind = &self.kind;
        let found = folder.project.find(&kind.group, &kind.version, &kind.kind);
        let Some(resource) = found.cloned() else {
            println!("{} is not there; nothing was written.", kind.kind);
            return Ok(());
        };
        let mut plan = folder.plan()?;
        remove(&folder, &resource, &mut plan)?;
        folder.project.resources.retain(|other| *other != resource);
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
}

/// Plans that all code of a kind goes.
fn remove(folder: &Folder, resource: &Resource, plan: &mut Plan) -> anyhow::Result<()> {
    let project = &folder.project;
    for name in resource.controller_names() {
        let site = Site::controller(project, resource, &name);
        plan.delete(site.beside("tests.rs"))?;
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
    let scaffolded = create::scaffolded(&folder.project, resource)?;
    let mut lost = Vec::new();
    for (path, change) in plan.changes() {
        let Change::Delete { before } = change else {
            continue;
        };
        let before = plan.bare(before);
        let as_made = scaffolded
            .iter()
            .any(|files| files.get(path).is_some_and(|text| text == before));
        let as_made = as_made || modules::is_chain(before);
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
