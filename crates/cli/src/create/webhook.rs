//! `kubewright create webhook`: where objects are defaulted, validated and converted.

use anyhow::{Context as _, bail};
use clap::{ArgAction, Args};
use kubewright_manifests::project::{Project, Resource, WebhookFlags};
use serde_json::{Value, json};

use super::{Kind, amend};
use crate::folder::Place;
use crate::generate;
use crate::scaffold::modules;
use crate::scaffold::plan::{Existing, Plan};
use crate::scaffold::site::Site;
use crate::scaffold::templates::Templates;
use crate::scaffold::writing::{Writing, Written};

/// Add webhooks to a kind: defaulting, validation, conversion
///
/// Writes a file with a pure function for each, and registers them, so that config/webhook follows from the program and the
/// manager serves them. kubewright dev has them called on this machine, and kubewright deploy on a cluster.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright create webhook --group webapp --version v1 --kind Guestbook --defaulting --programmatic-validation\n  \
    kubewright create webhook --group webapp --version v1 --kind Guestbook --conversion --spoke v2")]
pub(crate) struct CreateWebhook {
    #[command(flatten)]
    kind: Kind,

    /// Set defaults of objects
    #[arg(long)]
    defaulting: bool,

    /// Validate objects
    #[arg(long)]
    programmatic_validation: bool,

    /// Where the manager serves defaulting, if not at its usual path
    #[arg(long, value_name = "PATH", requires = "defaulting", value_parser = served_path)]
    defaulting_path: Option<String>,

    /// Where the manager serves validation, if not at its usual path
    #[arg(long, value_name = "PATH", requires = "programmatic_validation", value_parser = served_path)]
    validation_path: Option<String>,

    /// Convert between versions; this one is the hub
    #[arg(long)]
    conversion: bool,

    /// Versions that are converted to and from the hub
    #[arg(long, value_delimiter = ',', requires = "conversion")]
    spoke: Vec<String>,

    /// Build the program and generate config/ afterwards
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    make: bool,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    place: Place,
}

impl CreateWebhook {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.kind.check()?;
        if !(self.defaulting || self.programmatic_validation || self.conversion) {
            bail!("say what for: --defaulting, --programmatic-validation or --conversion");
        }
        let mut folder = self.place.open_to_change()?;
        let kind = &self.kind;
        let known = folder.project.find(&kind.group, &kind.version, &kind.kind);
        let resource = known.cloned().with_context(|| {
            format!(
                "there is no such kind; make it with: kubewright create api {}",
                kind.flags()
            )
        })?;
        if self.conversion && resource.api.is_none() {
            bail!(
                "{} is somebody else's kind, and so is its conversion",
                kind.kind
            );
        }
        self.check_spokes(&folder.project)?;
        let flags = self.merged(resource.webhooks.clone().unwrap_or_default());
        if resource.webhooks.as_ref() == Some(&flags) && !self.writing.force {
            println!("These webhooks are there already; nothing was written.");
            return Ok(());
        }
        let mut plan = folder.plan()?;
        let site = Site::webhook(&folder.project, &resource);
        let now = Templates::current();
        let render = |flags: &WebhookFlags| code(now, &folder.project, &resource, flags);
        let before = resource.webhooks.as_ref();
        let scaffolded = before.map(&render).transpose()?;
        let present = plan.read(&site.file())?;
        let added = before.and_then(|before| amend::added(before, &flags));
        let (code, existing) = match (&present, &added) {
            // What was only scaffolded is nobody's work and can be written anew.
            (Some(text), _) if Some(plan.bare(text)) == scaffolded.as_deref() => {
                (plan.headed(render(&flags)?), Existing::Replace)
            }
            (Some(text), Some(added)) if !self.writing.force => {
                let amended = amend::amended(text, &render(added)?);
                let file = folder.shown(&site.file());
                let amended = amended
                    .with_context(|| format!("{file} was left as it is; --force overwrites it"))?;
                (amended, Existing::Replace)
            }
            _ => (plan.headed(render(&flags)?), self.writing.existing()),
        };
        add_base(&mut plan)?;
        if flags.conversion {
            declare_conversion(&mut plan, &folder.project, &resource, &flags)?;
        }
        site.add(&mut plan, code, existing)?;
        if let Some(known) = folder.find_mut(&kind.group, &kind.version, &kind.kind) {
            known.webhooks = Some(flags);
        }
        folder.save(&mut plan)?;
        if self.writing.carry_out(&plan)? == Written::Something {
            if self.make {
                generate::after_scaffold(&folder)?;
            }
            println!(
                "\nNext: write the rules in {}, then run kubewright generate",
                folder.shown(&site.file())
            );
        }
        Ok(())
    }

    /// Whether all versions are there that are to be converted.
    fn check_spokes(&self, project: &Project) -> anyhow::Result<()> {
        let kind = &self.kind;
        for version in &self.spoke {
            if project.find(&kind.group, version, &kind.kind).is_none() {
                bail!(
                    "there is no version {version} to convert; make it with: kubewright create version {} --to {version}",
                    kind.flags()
                );
            }
        }
        Ok(())
    }

    /// What there is with what is asked for.
    fn merged(&self, mut flags: WebhookFlags) -> WebhookFlags {
        flags.webhook_version = "v1".to_owned();
        flags.defaulting |= self.defaulting;
        flags.validation |= self.programmatic_validation;
        flags.conversion |= self.conversion;
        flags.defaulting_path = self.defaulting_path.clone().or(flags.defaulting_path);
        flags.validation_path = self.validation_path.clone().or(flags.validation_path);
        for spoke in &self.spoke {
            if !flags.spoke.contains(spoke) {
                flags.spoke.push(spoke.clone());
            }
        }
        flags
    }
}

/// Why a text cannot be the path of a webhook.
#[derive(Debug, thiserror::Error)]
#[error(
    "a path begins with / and has letters, digits and - . _ / behind it, such as /default-guestbook"
)]
struct PathError;

/// A path at which the manager can serve something.
fn served_path(text: &str) -> Result<String, PathError> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    let is_path = text.len() > 1 && text.starts_with('/') && text.chars().all(known);
    is_path.then(|| text.to_owned()).ok_or(PathError)
}

/// The module of all webhooks, which `init` does not write: most projects have none.
pub(crate) fn add_base(plan: &mut Plan) -> anyhow::Result<()> {
    if plan.read("src/webhook.rs".as_ref())?.is_none() {
        let text = plan.headed("//! The webhooks of this program.\n");
        plan.write("src/webhook.rs", text, Existing::Refuse)?;
    }
    plan.edit("src/main.rs", |text| {
        if text.contains("mod webhook;") {
            text.to_owned()
        } else {
            modules::with_webhooks(text)
        }
    })
}

/// Every version says that a webhook converts it, unless somebody has written something else there.
pub(crate) fn declare_conversion(
    plan: &mut Plan,
    project: &Project,
    hub: &Resource,
    flags: &WebhookFlags,
) -> anyhow::Result<()> {
    for version in flags.spoke.iter().chain([&hub.version]) {
        let mut resource = hub.clone();
        resource.version = version.clone();
        plan.edit(Site::api(project, &resource).file(), converted)?;
    }
    Ok(())
}

/// The code of a kind, saying that a webhook converts it.
pub(super) fn converted(code: &str) -> String {
    let (plain, declared) = (
        "#[kubewright::api]\n",
        "#[kubewright::api(conversion = \"webhook\")]\n",
    );
    code.replacen(plain, declared, 1)
}

/// The webhooks of a kind, as they are written when they are created.
pub(super) fn code(
    templates: Templates,
    project: &Project,
    resource: &Resource,
    flags: &WebhookFlags,
) -> anyhow::Result<String> {
    templates.render("api/webhook.rs", values(project, resource, flags))
}

/// What the template of a kind's webhooks is filled in with.
fn values(project: &Project, resource: &Resource, flags: &WebhookFlags) -> Value {
    let group = resource.qualified_group();
    // Names of webhooks have three parts at least.
    let domain = if group.contains('.') {
        group.clone()
    } else {
        "k8s.io".to_owned()
    };
    let path = format!(
        "{}-{}-{}",
        group.replace('.', "-"),
        resource.version,
        resource.module()
    );
    let spokes = flags.spoke.iter().map(|version| {
        let mut other = resource.clone();
        other.version = version.clone();
        let path = format!("{}::{}", Site::api(project, &other).path(), other.kind);
        json!({"version": version, "path": path})
    });
    let at = |given: &Option<String>, verb: &str| {
        let usual = || format!("/{verb}-{path}");
        given.clone().unwrap_or_else(usual)
    };
    json!({
        "mutate_path": at(&flags.defaulting_path, "mutate"),
        "validate_path": at(&flags.validation_path, "validate"),
        "api_path": Site::api(project, resource).path(),
        "kind": resource.kind,
        "version": resource.version,
        "group": group,
        "plural": resource.plural(),
        "path": path,
        "domain": domain,
        "module": resource.module(),
        "own": resource.api.is_some(),
        "type_path": if resource.core {
            super::foreign::find(resource, None, || None).map(|it| it.path().to_owned()).unwrap_or_default()
        } else {
            format!("{}::{}", Site::api(project, resource).path(), resource.kind)
        },
        "defaulting": flags.defaulting,
        "validation": flags.validation,
        "conversion": flags.conversion,
        "spoke": spokes.collect::<Vec<_>>(),
    })
}
