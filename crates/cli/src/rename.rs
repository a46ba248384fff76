//! `kubewright rename`: another name for a kind or a version, in code, files and `PROJECT`.

mod words;

use anyhow::{Context as _, bail};
use clap::{ArgAction, Args, Subcommand};
use kubewright_manifests::project::{Name, Resource};

use crate::create::Kind;
use crate::folder::{Folder, Place};
use crate::generate;
use crate::scaffold::moves;
use crate::scaffold::plan::Plan;
use crate::scaffold::site::Site;
use crate::scaffold::writing::{Writing, Written};

/// Give a kind or a version of it another name
#[derive(Debug, Args)]
pub(crate) struct Rename {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Api(RenameApi),
    Version(RenameVersion),
}

/// Give a kind another name: its types, controllers, webhooks, files, and everything that names them
///
/// All versions of the kind are renamed. To the API server the result is another kind: objects of the old one on a cluster
/// stay what they are, and kubewright uninstall of the old definition deletes them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kubewright rename api --group webapp --kind Guestbook --to VisitorBook --dry-run --diff")]
struct RenameApi {
    /// The first part of the API group; the project's domain follows it
    #[arg(long, default_value = "")]
    group: String,

    /// The kind, in CamelCase
    #[arg(long)]
    kind: String,

    /// The name that it gets
    #[arg(long, value_name = "KIND")]
    to: String,

    /// The new plural, if it is irregular
    #[arg(long)]
    plural: Option<String>,

    #[command(flatten)]
    how: How,
}

/// Give a version of a kind another name: its files, and everything that names them
///
/// Objects that a cluster has stored in a version have to be written again in another before that one goes: to rename a
/// version that is deployed, use create version, and delete version once nothing is stored in the old one.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kubewright rename version --group webapp --version v1alpha1 --kind Guestbook --to v1beta1")]
struct RenameVersion {
    #[command(flatten)]
    kind: Kind,

    /// The name that it gets
    #[arg(long, value_name = "VERSION")]
    to: String,

    #[command(flatten)]
    how: How,
}

/// How it is done.
#[derive(Debug, Args)]
struct How {
    /// Build the program and generate config/ afterwards
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    make: bool,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl Rename {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Api(api) => api.run(),
            What::Version(version) => version.run(),
        }
    }
}

impl RenameApi {
    fn run(self) -> anyhow::Result<()> {
        Name::Kind.check(&self.kind).context("--kind")?;
        Name::Kind.check(&self.to).context("--to")?;
        if let Some(plural) = &self.plural {
            Name::Plural.check(plural).context("--plural")?;
        }
        let mut folder = self.how.place.open_to_change()?;
        self.check(&folder)?;
        let before = folder.project.clone();
        let is_it = |it: &Resource| it.group == self.group && it.kind == self.kind;
        let mut changed = Vec::new();
        for resource in folder.project.resources.iter_mut().filter(|it| is_it(it)) {
            let old = resource.clone();
            resource.kind = self.to.clone();
            resource.plural = self.plural.clone();
            changed.push((old, resource.clone()));
        }
        let mut plan = folder.plan()?;
        let project = &folder.project;
        let sites = changed.iter().flat_map(|(old, new)| {
            let from = moves::sites(&before, old).into_iter();
            from.zip(moves::sites(project, new))
        });
        moves::carry(sites, &mut plan)?;
        let Some((old, new)) = changed.first() else {
            return Ok(());
        };
        for file in moves::rust_files(&plan)? {
            plan.edit(&file, |text| words::kind(text, &old.kind, &new.kind))?;
        }
        for (old, new) in &changed {
            rename_names(&folder, old, new, &mut plan)?;
        }
        self.how.finish(&folder, &mut plan)
    }

    fn check(&self, folder: &Folder) -> anyhow::Result<()> {
        let resources = &folder.project.resources;
        let mut own = resources
            .iter()
            .filter(|it| it.group == self.group && it.kind == self.kind);
        let Some(first) = own.next() else {
            bail!(
                "there is no kind {} in group {:?} of this project",
                self.kind,
                self.group
            );
        };
        if first.api.is_none() || own.any(|it| it.api.is_none()) {
            bail!("{} is somebody else's kind, and so is its name", self.kind);
        }
        if let Some(other) = resources
            .iter()
            .find(|it| it.kind == self.kind && it.group != self.group)
        {
            bail!(
                "group {:?} has a kind {} too, and the code of both says {}: rename it by hand",
                other.group,
                other.kind,
                other.kind
            );
        }
        let taken = |it: &&Resource| it.kind.eq_ignore_ascii_case(&self.to);
        if let Some(other) = resources.iter().find(taken) {
            bail!("{} is there already", other.kind);
        }
        Ok(())
    }
}

impl RenameVersion {
    fn run(self) -> anyhow::Result<()> {
        self.kind.check()?;
        Name::Version.check(&self.to).context("--to")?;
        let kind = &self.kind;
        let mut folder = self.how.place.open_to_change()?;
        let before = folder.project.clone();
        if before.find(&kind.group, &self.to, &kind.kind).is_some() {
            bail!("{} {} is there already", kind.kind, self.to);
        }
        for other in &mut folder.project.resources {
            let is_it = other.group == kind.group && other.kind == kind.kind;
            if let Some(flags) = other.webhooks.as_mut().filter(|_| is_it) {
                let spokes = flags.spoke.iter_mut();
                spokes
                    .filter(|it| **it == kind.version)
                    .for_each(|it| it.clone_from(&self.to));
            }
        }
        let found = folder.find_mut(&kind.group, &kind.version, &kind.kind);
        let Some(resource) = found.filter(|it| it.api.is_some()) else {
            bail!(
                "this project has no type of {} {} to rename",
                kind.kind,
                kind.version
            );
        };
        let old = resource.clone();
        resource.version = self.to.clone();
        let mut new = resource.clone();
        new.path = Some(Site::api(&folder.project, &new).folder());
        if let Some(known) = folder.find_mut(&new.group, &new.version, &new.kind) {
            known.path = new.path.clone();
        }
        let mut plan = folder.plan()?;
        let from = moves::sites(&before, &old).into_iter();
        let sites = from.zip(moves::sites(&folder.project, &new));
        moves::carry(sites, &mut plan)?;
        rename_names(&folder, &old, &new, &mut plan)?;
        let is_it = |it: &&Resource| it.group == kind.group && it.kind == kind.kind;
        for hub in folder.project.resources.iter().filter(is_it) {
            let file = Site::webhook(&folder.project, hub).file();
            if plan.read(&file)?.is_some() {
                plan.edit(file, |text| words::spokes(text, &old.version, &new.version))?;
            }
        }
        self.how.finish(&folder, &mut plan)
    }
}

impl How {
    fn finish(&self, folder: &Folder, plan: &mut Plan) -> anyhow::Result<()> {
        folder.save(plan)?;
        if self.writing.carry_out(plan)? == Written::Something {
            if self.make {
                generate::after_scaffold(folder)?;
            }
            println!("\nNext: cargo fmt, then cargo test");
        }
        Ok(())
    }
}

/// Plans that names which follow from those of a kind and a version are those of the new ones: in its type, its webhooks and
/// the controller of the usual name. Everywhere else such words may mean something else.
fn rename_names(
    folder: &Folder,
    old: &Resource,
    new: &Resource,
    plan: &mut Plan,
) -> anyhow::Result<()> {
    let project = &folder.project;
    let edit = |site: &Site, plan: &mut Plan, change: &dyn Fn(&str) -> String| {
        let file = site.file();
        match plan.read(&file)? {
            Some(_) => plan.edit(file, change),
            None => Ok(()),
        }
    };
    let api = Site::api(project, new);
    edit(&api, plan, &|text| words::attributes(text, old, new))?;
    let webhook = Site::webhook(project, new);
    edit(&webhook, plan, &|text| words::webhooks(text, old, new))?;
    if !new.controller || old.module() == new.module() {
        return Ok(());
    }
    let controller = Site::controller(project, new, &new.module());
    let files = ["tests.rs", "simulation.rs"].map(|name| controller.beside(name));
    for file in files.into_iter().chain([controller.file()]) {
        if plan.read(&file)?.is_some() {
            plan.edit(file, |text| {
                words::controller(text, &old.module(), &new.module())
            })?;
        }
    }
    Ok(())
}
