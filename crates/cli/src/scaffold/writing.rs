//! The flags of commands that write files, and how they tell what they did.

use anyhow::bail;
use clap::Args;

use super::plan::{Existing, Plan, Verbs};
use super::transaction;

/// How files are written.
#[derive(Debug, Args, Clone, Copy, Default)]
pub(crate) struct Writing {
    /// Say what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Show the changes as a diff
    #[arg(long)]
    pub(crate) diff: bool,

    /// Overwrite and delete files that are your own
    #[arg(long)]
    pub(crate) force: bool,
}

/// Whether anything is different now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Nothing,
    Something,
}

impl Writing {
    /// What to do about files that are there already.
    pub(crate) fn existing(self) -> Existing {
        if self.force {
            Existing::Replace
        } else {
            Existing::Refuse
        }
    }

    /// Carries out a plan and tells what it did, or would do.
    ///
    /// # Errors
    /// When files are in the way, or cannot be written; then nothing has changed.
    pub(crate) fn carry_out(self, plan: &Plan) -> anyhow::Result<Written> {
        if !plan.conflicts().is_empty() {
            let files: Vec<String> = plan
                .conflicts()
                .iter()
                .map(|path| format!("  {}", path.display()))
                .collect();
            bail!(
                "these files are there already and would be overwritten:\n{}\n\
                 Nothing was written. Move them away, or overwrite them with --force.",
                files.join("\n")
            );
        }
        if self.diff {
            print!("{}", plan.diff());
        }
        if plan.changes().is_empty() {
            println!("Everything is as it should be; nothing was written.");
            return Ok(Written::Nothing);
        }
        if self.dry_run {
            print!("{}", plan.summary(Verbs::PLANNED));
            return Ok(Written::Nothing);
        }
        transaction::commit(plan)?;
        print!("{}", plan.summary(Verbs::DONE));
        Ok(Written::Something)
    }
}
