//! `kubewright create`: kinds, versions and webhooks. Adds files and one line that names each.

mod amend;
mod api;
mod code;
mod foreign;
mod image;
pub(crate) mod version;
pub(crate) mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use kubewright_manifests::project::{Name, NameError, Project, Resource};

use crate::scaffold::site::Site;
use crate::scaffold::templates::Templates;

/// Add a kind, a version of one, or webhooks to a project
#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Api(Box<api::CreateApi>),
    Version(version::CreateVersion),
    Webhook(webhook::CreateWebhook),
}

impl Create {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Api(api) => api.run(),
            What::Version(version) => version.run(),
            What::Webhook(webhook) => webhook.run(),
        }
    }
}

/// Which kind a command is about.
#[derive(Debug, Args, Clone)]
pub(crate) struct Kind {
    /// The first part of the API group; the project's domain follows it
    #[arg(long, default_value = "")]
    pub(crate) group: String,

    /// The version, such as v1 or v1alpha1
    #[arg(long)]
    pub(crate) version: String,

    /// The kind, in CamelCase
    #[arg(long)]
    pub(crate) kind: String,
}

impl Kind {
    pub(crate) fn check(&self) -> Result<(), NameError> {
        Name::Group.check(&self.group)?;
        Name::Version.check(&self.version)?;
        Name::Kind.check(&self.kind)
    }

    /// As it is written on a command line.
    pub(crate) fn flags(&self) -> String {
        format!(
            "--group {} --version {} --kind {}",
            self.group, self.version, self.kind
        )
    }
}

/// The word before a name.
pub(crate) fn article(name: &str) -> &'static str {
    if name.starts_with(['A', 'E', 'I', 'O']) {
        "an"
    } else {
        "a"
    }
}

/// A name in small letters with dashes, as Rust calls functions.
pub(crate) fn snake(name: &str) -> String {
    name.replace(['-', '.'], "_")
}

/// A name in small letters with dashes, as Rust calls types.
pub(crate) fn camel(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split(['-', '_', '.']).map(part).collect()
}

/// The files of a kind as they are written when it is created, in each of the ways in which that can be. Types from a
/// definition on file are not among them.
pub(crate) fn scaffolded(
    templates: Templates,
    project: &Project,
    resource: &Resource,
) -> anyhow::Result<Vec<BTreeMap<PathBuf, String>>> {
    let mut ways = Vec::new();
    for report in [code::Report::Status, code::Report::Nothing] {
        let mut files = code::scaffolded(templates, project, resource, report)?;
        if let Some(flags) = &resource.webhooks {
            let file = Site::webhook(project, resource).file();
            files.insert(file, webhook::code(templates, project, resource, flags)?);
            let kind = files.get_mut(&Site::api(project, resource).file());
            if let Some(kind) = kind.filter(|_| flags.conversion) {
                *kind = webhook::converted(kind);
            }
        }
        ways.push(files);
    }
    Ok(ways)
}
