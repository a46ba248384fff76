//! `kubewright generate` and `kubewright manifests`: everything that follows from the compiled program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use kubewright_manifests::layout::{self, Settings};
use kubewright_manifests::{bundle, chart, dashboard};

use crate::folder::{Folder, Place};
use crate::program::Source;
use crate::scaffold::plan::{Existing, Plan, Verbs, read_text};
use crate::scaffold::writing::{Writing, Written};

/// What can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Artifact {
    /// config/crd, the definitions of the kinds
    Crd,
    /// config/rbac, the roles of the manager
    Rbac,
    /// config/webhook, the configurations of webhooks
    Webhook,
    /// dist/install.yaml, everything in one file
    Install,
    /// config/samples, an object of each kind
    Samples,
    /// docs/api.md, the reference of the kinds
    Docs,
    /// dist/chart, from now on with everything else
    Helm,
    /// dist/bundle for the Operator Lifecycle Manager, from now on with everything else
    Olm,
    /// dist/grafana, a dashboard of the manager's metrics, from now on with everything else
    Grafana,
    /// everything that the project has
    All,
}

/// Write config/, dist/install.yaml and docs/api.md from the compiled program
///
/// Files that are generated say so in their first line. One without that line is yours and is left alone, unless --force is
/// given. Generated files that nothing leads to any more are deleted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright generate\n  \
    kubewright generate crd rbac\n  \
    kubewright generate helm                a chart in dist/chart, written again with everything else\n  \
    kubewright generate olm grafana         a bundle in dist/bundle and a dashboard in dist/grafana\n  \
    kubewright generate --check             for CI: fails if anything would change\n  \
    kubewright generate install --image registry.example.com/guestbook:1.0")]
pub(crate) struct Generate {
    /// What to generate
    #[arg(value_enum)]
    what: Vec<Artifact>,

    /// Fail if anything is not as it would be generated, and write nothing. The image in dist/install.yaml may be any, unless
    /// --image names one
    #[arg(long)]
    check: bool,

    /// The manager's image, instead of the project's
    #[arg(long)]
    image: Option<String>,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl Generate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut folder = self.place.open()?;
        let mut options = folder.project.options();
        options.helm |= self.what.contains(&Artifact::Helm);
        options.olm |= self.what.contains(&Artifact::Olm);
        options.grafana |= self.what.contains(&Artifact::Grafana);
        if options != folder.project.options() {
            folder.project.set_options(&options);
        }
        let inventory = self.source.inventory(&folder)?;
        let files = if self.check && self.image.is_none() {
            layout::expected(&folder.root, &folder.project, &inventory)?
        } else {
            let settings = Settings::image(self.image.clone());
            layout::files(&folder.project, &inventory, &settings)?
        };
        let (mut plan, own) = plan(&folder, files, &self.what, self.writing.existing())?;
        folder.save(&mut plan)?;
        for path in own {
            println!(
                "  left alone {}: its first line does not say that it is generated",
                path.display()
            );
        }
        if self.check {
            return self.compare(&plan);
        }
        if self.writing.carry_out(&plan)? == Written::Something {
            println!("\nNext: kubewright install, or kubewright dev");
        }
        Ok(())
    }

    /// Fails if anything would change.
    fn compare(&self, plan: &Plan) -> anyhow::Result<()> {
        if plan.changes().is_empty() {
            println!("Everything is as the program says.");
            return Ok(());
        }
        if self.writing.diff {
            print!("{}", plan.diff())
        } else {
            print!("{}", plan.summary(Verbs::PLANNED))
        }
        bail!("generated files are not what the program says; run: kubewright generate");
    }
}

/// Generates everything after files of a project were added or removed.
///
/// # Errors
/// When the program does not build. The files are written all the same.
pub(crate) fn after_scaffold(folder: &Folder) -> anyhow::Result<()> {
    println!("\nBuilding the program, to generate config/ from it. The first time takes a while.");
    let inventory = Source::default().inventory(folder);
    let inventory = inventory.map_err(|error| {
        error.context("the files are written, config/ is not; fix it and run: kubewright generate")
    })?;
    let files = layout::files(&folder.project, &inventory, &Settings::default())?;
    let (plan, _) = plan(folder, files, &[], Existing::Refuse)?;
    Writing::default().carry_out(&plan)?;
    Ok(())
}

/// Plans generated files, and the end of those that are not generated any more. Gives the files that are people's own.
fn plan(
    folder: &Folder,
    files: BTreeMap<PathBuf, String>,
    what: &[Artifact],
    existing: Existing,
) -> anyhow::Result<(Plan, Vec<PathBuf>)> {
    let mut plan = folder.plan()?;
    let mut own = Vec::new();
    for path in layout::generated_files(&folder.root)? {
        if !files.contains_key(&path) && wanted(&path, what) {
            plan.delete(path)?;
        }
    }
    for (path, text) in files {
        if !wanted(&path, what) {
            continue;
        }
        let present = read_text(&folder.root.join(&path))?;
        let ours = present.is_none_or(|present| layout::is_generated(&present));
        if ours || existing == Existing::Replace {
            plan.write(path, text, Existing::Replace)?
        } else {
            own.push(path)
        }
    }
    Ok((plan, own))
}

/// Whether a file is part of what is asked for.
fn wanted(path: &Path, what: &[Artifact]) -> bool {
    let part = |artifact: &Artifact| match artifact {
        Artifact::All => true,
        Artifact::Crd => path.starts_with("config/crd"),
        Artifact::Rbac => path.starts_with("config/rbac"),
        Artifact::Webhook => path.starts_with("config/webhook"),
        Artifact::Samples => path.starts_with("config/samples"),
        Artifact::Docs => path.starts_with("docs"),
        Artifact::Install => path == Path::new("dist/install.yaml"),
        Artifact::Helm => path.starts_with(chart::FOLDER),
        Artifact::Olm => path.starts_with(bundle::FOLDER),
        Artifact::Grafana => path == Path::new(dashboard::FILE),
    };
    what.is_empty() || what.iter().any(part)
}
