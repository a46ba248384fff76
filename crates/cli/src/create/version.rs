//! `kubewright create version`: another version of a kind, which begins as a copy.

use anyhow::{Context as _, bail};
use clap::{ArgAction, Args};
use kubewright_manifests::project::Name;

use super::Kind;
use crate::folder::Place;
use crate::generate;
use crate::scaffold::site::Site;
use crate::scaffold::writing::{Writing, Written};

/// Add a version of a kind, beginning as a copy of another
///
/// The new version is served; objects are stored as the old one until you say otherwise (`storage = false` is the line to
/// move). Versions of the same shape need no conversion. For others, see `kubewright create webhook --conversion`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kubewright create version --group webapp --version v1 --kind Guestbook --to v2")]
pub(crate) struct CreateVersion {
    #[command(flatten)]
    kind: Kind,

    /// The version to add
    #[arg(long, value_name = "VERSION")]
    to: String,

    /// Build the program and generate config/ afterwards
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    make: bool,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl CreateVersion {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.kind.check()?;
        Name::Version.check(&self.to).context("--to")?;
        let mut folder = self.place.open_to_change()?;
        let kind = &self.kind;
        let Some(old) = folder.project.find(&kind.group, &kind.version, &kind.kind) else {
            bail!(
                "there is no such kind; make it with: kubewright create api {}",
                kind.flags()
            );
        };
        if old.api.is_none() {
            bail!("the type of {} is not this project's own", kind.kind);
        }
        if folder
            .project
            .find(&kind.group, &self.to, &kind.kind)
            .is_some()
        {
            println!(
                "{} {} is there already; nothing was written.",
                kind.kind, self.to
            );
            return Ok(());
        }
        let mut new = old.clone();
        new.version = self.to.clone();
        new.controller = false;
        new.controllers = Vec::new();
        new.webhooks = None;
        let site = Site::api(&folder.project, &new);
        new.path = Some(site.folder());
        let mut plan = folder.plan()?;
        let from = Site::api(&folder.project, old).file();
        let code = plan.read(&from)?;
        let code = code.with_context(|| format!("{} is missing", from.display()))?;
        site.add(&mut plan, self.copied(&code)?, self.writing.existing())?;
        folder.project.resources.push(new);
        folder.save(&mut plan)?;
        if self.writing.carry_out(&plan)? == Written::Something {
            if self.make {
                generate::after_scaffold(&folder)?;
            }
            println!(
                "\nNext: change {}, then run kubewright generate",
                folder.shown(&site.file())
            );
        }
        Ok(())
    }

    /// The code of the old version as that of the new one, which nothing is stored as.
    fn copied(&self, code: &str) -> anyhow::Result<String> {
        let line = format!("version = \"{}\"", self.kind.version);
        if code.matches(&line).count() != 1 {
            bail!("the line `{line}` of #[kube(..)] cannot be found in the code to copy");
        }
        let code = code.replace("    storage = false,\n", "");
        let new = format!("version = \"{}\"", self.to);
        Ok(not_stored(&code.replace(&line, &new), &self.to))
    }
}

/// The code of a version that nothing is stored as.
pub(crate) fn not_stored(code: &str, version: &str) -> String {
    let line = format!("version = \"{version}\"");
    code.replacen(&line, &format!("{line},\n    storage = false"), 1)
}

/// The code of a version without its name, and without whether it is stored: the same for a version and its copy.
pub(crate) fn anonymous(code: &str, version: &str) -> String {
    let line = format!("version = \"{version}\"");
    let code = code.replacen(&line, "", 1);
    code.replace("    storage = false,\n", "")
}
