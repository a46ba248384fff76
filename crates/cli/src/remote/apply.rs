//! Applies objects, one after the other, and tells of each.

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::{FIELD_MANAGER, Target};

/// How objects are applied.
#[derive(Debug, Args, Clone, Copy, Default)]
pub(crate) struct Applying {
    /// Let the server check everything, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Take over fields that somebody else has set to something else
    #[arg(long)]
    pub(crate) force_conflicts: bool,
}

impl Applying {
    fn parameters(self) -> PatchParams {
        let mut parameters = PatchParams::apply(FIELD_MANAGER);
        parameters.dry_run = self.dry_run;
        parameters.force = self.force_conflicts;
        parameters
    }

    /// Applies objects in their order. Gives those that the server has now.
    ///
    /// # Errors
    /// When the server refuses one; those before it are applied.
    pub(crate) async fn all(
        self,
        client: &Client,
        objects: &[Value],
    ) -> anyhow::Result<Vec<Target>> {
        let mut applied = Vec::new();
        for value in objects {
            if let Some(target) = self.one(client, value).await? {
                applied.push(target);
            }
        }
        Ok(applied)
    }

    async fn one(self, client: &Client, value: &Value) -> anyhow::Result<Option<Target>> {
        let Some(target) = Target::find(client, value).await? else {
            return self.unknown(value);
        };
        let before = target.api.get_opt(target.name()).await;
        let before = before.with_context(|| format!("{} cannot be read", target.shown()))?;
        let patch = Patch::Apply(&target.object);
        let after = target
            .api
            .patch(target.name(), &self.parameters(), &patch)
            .await;
        let after = match after {
            Ok(after) => after,
            // In a namespace that a dry run did not make, nothing can be tried.
            Err(kube::Error::Api(status)) if self.dry_run && status.code == 404 => {
                println!("  {} would be created", target.shown());
                return Ok(Some(target));
            }
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "{} has fields that somebody else manages: {}. Take them over with --force-conflicts",
                target.shown(),
                status.message
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be applied", target.shown()));
            }
        };
        let what = match before {
            None => "created",
            Some(before) if before.metadata.resource_version == after.metadata.resource_version => {
                "unchanged"
            }
            Some(_) => "configured",
        };
        let mode = if self.dry_run { " (dry run)" } else { "" };
        println!("  {} {what}{mode}", target.shown());
        Ok(Some(target))
    }

    /// What to do about a kind that the server does not know.
    fn unknown(self, value: &Value) -> anyhow::Result<Option<Target>> {
        let (kind, version) = (&value["kind"], &value["apiVersion"]);
        bail!(
            "the cluster does not know the kind {} of {}; install what it belongs to first",
            kind.as_str().unwrap_or_default(),
            version.as_str().unwrap_or_default()
        );
    }
}
