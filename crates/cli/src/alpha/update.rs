//! `kubewright alpha update`: merges what a newer scaffold writes into a project.
//!
//! Three texts of each file meet: what the scaffold wrote that the project is of, which this program renders again from the
//! templates that it keeps of earlier releases; what people have made of it; and what the scaffold of today writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::replay;
use crate::folder::{Folder, Place};
use crate::notes::counted;
use crate::scaffold::merge::{Sides, merge, unresolved};
use crate::scaffold::plan::{Existing, Plan};
use crate::scaffold::templates::{CURRENT, Templates};
use crate::scaffold::writing::Writing;
use crate::sdk::Sdk;

/// Merge what this version scaffolds into a project that an earlier one made
///
/// Your changes stay. A line that both you and the scaffold have changed is marked as git marks conflicts, and the command
/// fails once everything is written, so that scripts notice. Files that you deleted stay deleted. Neither git nor a network is
/// needed. Everything in config/ but the overlays is generated: run kubewright generate afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright alpha update --dry-run --diff\n  \
    kubewright alpha update && kubewright generate && cargo test")]
pub(crate) struct Update {
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Show the changes as a diff
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    place: Place,
}

/// What became of the files, besides what is planned.
#[derive(Debug, Default)]
struct Summary {
    /// Files and lines at which conflicts begin.
    conflicts: Vec<(PathBuf, Vec<usize>)>,
    /// What people should know, a line each.
    notes: Vec<String>,
}

/// The texts of files by path.
type Files = BTreeMap<PathBuf, String>;

impl Update {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut folder = self.place.open_to_change()?;
        let number = folder.project.scaffold();
        let Some(old) = Templates::of(number) else {
            bail!(
                "this project was scaffolded by a newer kubewright: its scaffold is number {number}, and {CURRENT} is the newest \
                 that this command knows; install a newer kubewright command"
            );
        };
        let (base, theirs) = scaffolds(&folder, old)?;
        let paths: BTreeSet<&PathBuf> = base
            .iter()
            .chain(&theirs)
            .flat_map(|it| it.keys())
            .collect();
        let mut plan = folder.plan()?;
        check_resolved(&plan, &paths)?;
        let mut summary = Summary::default();
        for path in paths {
            summary.merge(path, &base, &theirs, &mut plan)?;
        }
        folder.project.cli_version = Some(format!("v{}", env!("CARGO_PKG_VERSION")));
        folder.project.set_scaffold(CURRENT);
        folder.save(&mut plan)?;
        self.carry_out(&plan, &summary)
    }

    fn carry_out(&self, plan: &Plan, summary: &Summary) -> anyhow::Result<()> {
        let writing = Writing {
            dry_run: self.dry_run,
            diff: self.diff,
            force: false,
        };
        writing.carry_out(plan)?;
        for note in &summary.notes {
            println!("  {note}");
        }
        let mut count = 0;
        for (path, lines) in &summary.conflicts {
            for line in lines {
                println!("  conflict {}:{line}", path.display());
            }
            count += lines.len();
        }
        if count > 0 && !self.dry_run {
            bail!(
                "{} to be resolved: edit the files between <<<<<<< and >>>>>>>, then run kubewright generate and cargo test",
                counted(count, "conflict has", "conflicts have")
            );
        }
        if !plan.changes().is_empty() && !self.dry_run {
            println!("\nNext: kubewright generate, then cargo test");
        }
        Ok(())
    }
}

/// What the project's scaffold wrote, and what that of this program writes, in each of the ways in which that can be.
fn scaffolds(folder: &Folder, old: Templates) -> anyhow::Result<(Vec<Files>, Vec<Files>)> {
    let manifest = folder.plan()?.read(Path::new("Cargo.toml"))?;
    let sdk = Sdk::of_project(&manifest.unwrap_or_default());
    let sdk = sdk.unwrap_or_else(Sdk::of_this_program);
    let release = folder.project.cli_version.as_deref().unwrap_or_default();
    let newer = sdk.newer_than(release.trim_start_matches('v'));
    let base = replay::files(old, &folder.project, &sdk)?;
    let theirs = replay::files(Templates::current(), &folder.project, &newer)?;
    Ok((base, theirs))
}

/// Refuses to merge into files that still have the marks of an earlier merge.
fn check_resolved(plan: &Plan, paths: &BTreeSet<&PathBuf>) -> anyhow::Result<()> {
    let mut marked = Vec::new();
    for path in paths {
        let text = plan.read(path)?.unwrap_or_default();
        let lines = unresolved(&text).into_iter();
        marked.extend(lines.map(|line| format!("  {}:{line}", path.display())));
    }
    if marked.is_empty() {
        return Ok(());
    }
    bail!(
        "these conflicts of an earlier merge are not resolved:\n{}\n\
         Nothing was written. Edit the files between <<<<<<< and >>>>>>>, then try again.",
        marked.join("\n")
    );
}

impl Summary {
    /// Plans what becomes of a file.
    fn merge(
        &mut self,
        path: &Path,
        base: &[Files],
        theirs: &[Files],
        plan: &mut Plan,
    ) -> anyhow::Result<()> {
        let present = plan.read(path)?;
        let ours = present.as_deref().map(|text| plan.bare(text));
        if ours.is_some_and(is_from_definition) {
            return Ok(());
        }
        let way = closest(base, path, ours);
        let text = |ways: &[Files]| ways.get(way).and_then(|files| files.get(path)).cloned();
        let (base, theirs) = (text(base), text(theirs));
        if base == theirs || ours == theirs.as_deref() {
            return Ok(());
        }
        let shown = path.display();
        match (ours, theirs) {
            (None, Some(theirs)) if base.is_none() => {
                let is_rust = path.extension().is_some_and(|it| it == "rs");
                let text = if is_rust { plan.headed(theirs) } else { theirs };
                plan.write(path, text, Existing::Replace)
            }
            (None, _) => {
                self.notes.push(format!(
                    "left out {shown}: you deleted it, and the scaffold has changed it"
                ));
                Ok(())
            }
            (Some(ours), None) if Some(ours) == base.as_deref() => plan.delete(path),
            (Some(_), None) => {
                self.notes.push(format!(
                    "left alone {shown}: the scaffold has it no more, and you have changed it"
                ));
                Ok(())
            }
            (Some(ours), Some(theirs)) => {
                let sides = Sides {
                    ours: "yours",
                    theirs: concat!("kubewright ", env!("CARGO_PKG_VERSION")),
                };
                let merged = merge(&base.unwrap_or_default(), ours, &theirs, sides);
                let whole = present.as_deref().unwrap_or_default();
                let header = &whole[..whole.len() - ours.len()];
                let above = header.lines().count();
                if !merged.conflicts.is_empty() {
                    let lines = merged.conflicts.iter().map(|line| line + above);
                    self.conflicts.push((path.to_path_buf(), lines.collect()));
                }
                plan.write(path, format!("{header}{}", merged.text), Existing::Replace)
            }
        }
    }
}

/// Whether a type was written from a definition, which is kept nowhere: it cannot be written again.
fn is_from_definition(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("//! The kind `") && first.ends_with(", from its definition.")
}

/// The way in which a scaffold most probably wrote a file: the one that is most like what has become of it.
fn closest(ways: &[Files], path: &Path, ours: Option<&str>) -> usize {
    let ours = ours.unwrap_or_default();
    let like = |files: &Files| match files.get(path) {
        Some(text) => similar::TextDiff::from_lines(text.as_str(), ours).ratio(),
        None => 0.0,
    };
    let mut best = (0, f32::MIN);
    for (way, files) in ways.iter().enumerate() {
        let ratio = like(files);
        if ratio > best.1 {
            best = (way, ratio);
        }
    }
    best.0
}
