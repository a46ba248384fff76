//! `kubewright install`, `uninstall`, `deploy` and `undeploy`: the kinds and the manager on a cluster.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use kubewright_manifests::layout::{self, Settings, WebhookSetting};
use serde_json::Value;

use crate::folder::Place;
use crate::notes;
use crate::program::Source;
use crate::remote::apply::Applying;
use crate::remote::connect::Connection;
use crate::remote::remove::{self, Kinds};
use crate::remote::{block_on, wait};
use crate::scaffold::plan::read_text;

/// What a command is about: objects, what has to be known about the program that they are of, and what is left out of it.
#[derive(Default)]
struct Subject {
    objects: Vec<Value>,
    /// Objects that an earlier deployment may have left, and that would be in the way.
    left_out: Vec<Value>,
    note: Option<String>,
}

/// What all four need.
#[derive(Debug, Args)]
struct Common {
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,

    /// Use the objects of this file instead of those of the program
    #[arg(long, value_name = "FILE")]
    manifests: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    place: Place,
}

/// Install the kinds of this project into a cluster
///
/// Builds the program, applies its definitions with server-side apply as field manager `kubewright`, and waits until the
/// cluster serves them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright install\n  \
    kubewright install --kubeconfig .kubewright/kubeconfig --dry-run")]
pub(crate) struct Install {
    #[command(flatten)]
    applying: Applying,
    #[command(flatten)]
    common: Common,
}

/// Remove the kinds of this project, and all their objects, from a cluster
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kubewright uninstall --context test")]
pub(crate) struct Uninstall {
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// As in kubebuilder; what is not there is never an error
    #[arg(long, hide = true)]
    ignore_not_found: bool,
    #[command(flatten)]
    common: Common,
}

/// Deploy the manager, its roles and the kinds to a cluster
///
/// Applies what dist/install.yaml has in it, webhooks and conversions included, and waits until the manager is available. The
/// manager makes its own certificates; `kubewright edit --certificates` has others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright deploy --image registry.example.com/guestbook:1.0\n  \
    kubewright deploy --replicas 2\n  \
    kubewright deploy --without-webhooks\n  \
    kubewright deploy --manifests config/samples/webapp_v1_guestbook.yaml --wait-for Ready\n  \
    kubectl kustomize config/overlays/example > out.yaml && kubewright deploy --manifests out.yaml")]
pub(crate) struct Deploy {
    /// The manager's image, instead of the project's
    #[arg(long)]
    image: Option<String>,
    /// How many replicas the manager has; one leads and all serve webhooks
    #[arg(long, value_name = "NUMBER", conflicts_with = "manifests", value_parser = clap::value_parser!(u32).range(1..=100))]
    replicas: Option<u32>,
    /// Deploy neither admission webhooks nor conversions: objects are not defaulted or validated, and kinds of several versions
    /// serve the stored one alone
    #[arg(long, conflicts_with = "manifests")]
    without_webhooks: bool,
    /// Wait until each of the objects has this condition as well, such as Ready
    #[arg(long, value_name = "CONDITION", requires = "manifests")]
    wait_for: Option<String>,
    #[command(flatten)]
    applying: Applying,
    #[command(flatten)]
    common: Common,
}

/// Remove the manager, its roles and the kinds from a cluster
///
/// Objects of the kinds go first, while the manager is there to finish them; then the manager, and its namespace at last.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kubewright undeploy\n  kubewright undeploy --keep-kinds")]
pub(crate) struct Undeploy {
    /// Leave the kinds and their objects
    #[arg(long)]
    keep_kinds: bool,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// As in kubebuilder; what is not there is never an error
    #[arg(long, hide = true)]
    ignore_not_found: bool,
    #[command(flatten)]
    common: Common,
}

impl Install {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Subject { objects, note, .. } = self.common.definitions()?;
        if objects.is_empty() {
            println!("The program has no kinds of its own; there is nothing to install.");
            return Ok(());
        }
        self.common.apply(self.applying, &objects, None)?;
        notes::tell(note.as_deref());
        let next = if note.is_some() {
            "kubewright deploy, or kubewright dev, which converts in a cluster of its own"
        } else {
            "kubewright run"
        };
        println!("\nNext: {next}; then kubectl apply -k config/samples");
        Ok(())
    }
}

impl Uninstall {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let objects = self.common.definitions()?.objects;
        if self.dry_run {
            tell(&objects)
        } else {
            self.common.delete(&objects, Kinds::Delete)?
        }
        Ok(())
    }
}

impl Deploy {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let webhooks = if self.without_webhooks {
            WebhookSetting::LeftOut
        } else {
            WebhookSetting::Deployed
        };
        let settings = Settings::image(self.image.clone())
            .webhooks(webhooks)
            .replicas(self.replicas);
        let subject = self.common.subject(&settings)?;
        let condition = self.wait_for.as_deref();
        if !self.applying.dry_run {
            self.common.clear(&subject.left_out)?;
        }
        self.common
            .apply(self.applying, &subject.objects, condition)?;
        notes::tell(subject.note.as_deref());
        if self.common.manifests.is_none() {
            println!(
                "\nNext: kubectl apply -k config/samples; kubewright undeploy takes all of it away"
            );
        }
        Ok(())
    }
}

impl Undeploy {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let objects = self.common.subject(&Settings::default())?.objects;
        let kinds = if self.keep_kinds {
            Kinds::Keep
        } else {
            Kinds::Delete
        };
        if self.dry_run {
            tell(&objects)
        } else {
            self.common.delete(&objects, kinds)?
        }
        Ok(())
    }
}

impl Common {
    fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Everything that is deployed, in its order.
    fn subject(&self, settings: &Settings) -> anyhow::Result<Subject> {
        if let Some(file) = &self.manifests {
            let text = read_text(file)?;
            let text = text.with_context(|| format!("{} does not exist", file.display()))?;
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
                .with_context(|| format!("{} is no YAML", file.display()))?;
            let objects = documents.into_iter().filter(|it| !it.is_null()).collect();
            return Ok(Subject {
                objects,
                ..Subject::default()
            });
        }
        let folder = self.place.open()?;
        let inventory = self.source.inventory(&folder)?;
        let objects = layout::deployed(&folder.project, &inventory, settings)?;
        let mut left_out = Vec::new();
        if settings.webhooks == WebhookSetting::LeftOut {
            left_out = layout::deployed(&folder.project, &inventory, &Settings::default())?;
            left_out.retain(|object| !objects.iter().any(|kept| is_same(kept, object)));
        }
        let is_left_out = !left_out.is_empty() || folder.project.options().without_webhooks;
        Ok(Subject {
            objects,
            left_out,
            note: is_left_out.then(|| notes::left_out(&inventory)).flatten(),
        })
    }

    fn definitions(&self) -> anyhow::Result<Subject> {
        let mut subject = self.subject(&Settings::default())?;
        let is_kind = |object: &Value| object["kind"] == "CustomResourceDefinition";
        subject.objects.retain(is_kind);
        subject.note = notes::conversions(&subject.objects);
        Ok(subject)
    }

    fn apply(
        &self,
        applying: Applying,
        objects: &[Value],
        condition: Option<&str>,
    ) -> anyhow::Result<()> {
        block_on(async {
            let client = self.connection.client().await?;
            let applied = applying.all(&client, objects).await?;
            if applying.dry_run {
                Ok(())
            } else {
                wait::until_ready(&applied, condition, self.patience()).await
            }
        })
    }

    /// Deletes what an earlier deployment may have left.
    fn clear(&self, objects: &[Value]) -> anyhow::Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        block_on(async {
            let client = self.connection.client().await?;
            remove::all(&client, objects, Kinds::Keep, self.patience()).await
        })
    }

    fn delete(&self, objects: &[Value], kinds: Kinds) -> anyhow::Result<()> {
        block_on(async {
            let client = self.connection.client().await?;
            remove::all(&client, objects, kinds, self.patience()).await
        })?;
        println!("Nothing of it is left.");
        Ok(())
    }
}

/// Whether two values are the same object on a cluster.
fn is_same(one: &Value, other: &Value) -> bool {
    let place = |object: &Value| {
        let metadata = &object["metadata"];
        [&object["kind"], &metadata["namespace"], &metadata["name"]].map(Value::clone)
    };
    place(one) == place(other)
}

/// Says what would be deleted.
fn tell(objects: &[Value]) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for object in objects.iter().rev() {
        let kind = text(&object["kind"]).to_ascii_lowercase();
        println!(
            "  would delete {kind} {}",
            text(&object["metadata"]["name"])
        );
    }
}
