//! Reads and writes the file `PROJECT`: kubebuilder's schema version 3, so that people and tools know their way.
//!
//! What is not known here survives: unknown fields are kept where they were found.

mod name;
mod options;
mod resource;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use name::{Name, NameError, plural_of};
pub use options::{CertificateSource, Options};
pub use resource::{ApiFlags, ImageFlags, NamedController, Resource, WebhookFlags};

use crate::yaml;

/// The schema that is written, and the only one that is read.
pub const VERSION: &str = "3";
/// The layout of projects that are made here.
pub const LAYOUT: &str = "kubewright.dev/v1";
/// Where the number of the scaffold is kept.
const SCAFFOLD: &str = "scaffold.kubewright.dev/v1";
/// Larger files are no `PROJECT`.
const MAX_BYTES: usize = 1 << 20;
/// What the file begins with.
const HEADER: &str =
    "# Written by kubewright. Its commands keep this file; fields that they do not know stay.\n";

/// A project: what was scaffolded, and how.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// The version of the command that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli_version: Option<String>,
    /// What API groups end with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// The layouts that apply to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<String>,
    /// Whether folders are by group and version instead of by version.
    #[serde(default, skip_serializing_if = "is_false")]
    pub multigroup: bool,
    /// Whether the operator works in given namespaces instead of the whole cluster.
    #[serde(default, skip_serializing_if = "is_false")]
    pub namespaced: bool,
    /// What layouts keep for themselves.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub plugins: Map<String, Value>,
    /// Its name, which the names of all deployed objects begin with.
    pub project_name: String,
    /// Where its source is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Its kinds, in the order in which they were created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The schema of this file.
    pub version: String,
    /// Fields that this version does not know; they are written back unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Why a `PROJECT` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// It is too large to be one.
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
    /// It is no YAML, or no project.
    #[error("{reason}")]
    Malformed {
        /// What the reader says, with the line.
        reason: String,
    },
    /// It is of another schema.
    #[error("its version is {found:?}; only \"3\" can be read")]
    Version {
        /// The version that it claims.
        found: String,
    },
    /// A name in it cannot be used.
    #[error("{0}")]
    Name(NameError),
}

impl Project {
    /// A project without kinds.
    pub fn new(name: &str, domain: &str, cli_version: &str) -> Self {
        Self {
            cli_version: Some(cli_version.to_owned()),
            domain: domain.to_owned(),
            layout: vec![LAYOUT.to_owned()],
            project_name: name.to_owned(),
            version: VERSION.to_owned(),
            ..Self::default()
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// When it is not a project of schema 3, or has a name that is not valid for what it names.
    pub fn parse(text: &str) -> Result<Self, ProjectError> {
        if text.len() > MAX_BYTES {
            return Err(ProjectError::TooLarge);
        }
        let project: Self =
            serde_saphyr::from_str(text).map_err(|error| ProjectError::Malformed {
                reason: first_line(&error.to_string()),
            })?;
        if project.version != VERSION {
            return Err(ProjectError::Version {
                found: project.version,
            });
        }
        project.check().map_err(ProjectError::Name)?;
        Ok(project)
    }

    fn check(&self) -> Result<(), NameError> {
        Name::Project.check(&self.project_name)?;
        if !self.domain.is_empty() {
            Name::Domain.check(&self.domain)?;
        }
        self.resources.iter().try_for_each(Resource::check)
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let document = yaml::document(self);
        let body = document.strip_prefix("---\n").unwrap_or(&document);
        format!("{HEADER}{body}")
    }

    /// The namespace that it is deployed to.
    pub fn namespace(&self) -> String {
        format!("{}-system", self.project_name)
    }

    /// The resource of this group, version and kind. The group is without the domain.
    pub fn find(&self, group: &str, version: &str, kind: &str) -> Option<&Resource> {
        let mut all = self.resources.iter();
        all.find(|r| (&*r.group, &*r.version, &*r.kind) == (group, version, kind))
    }

    /// What this layout keeps about deployments.
    pub fn options(&self) -> Options {
        Options::read(self.plugins.get(LAYOUT))
    }

    /// Stores these options in the file's plugin section; defaults are left out.
    pub fn set_options(&mut self, options: &Options) {
        match options.write(self.plugins.get(LAYOUT)) {
            Some(value) => drop(self.plugins.insert(LAYOUT.to_owned(), value)),
            None => drop(self.plugins.remove(LAYOUT)),
        }
    }
}

impl Project {
    /// The number of the scaffold that its files are of. Projects that do not say are of the first.
    pub fn scaffold(&self) -> u32 {
        let kept = self.plugins.get(SCAFFOLD).map(|it| &it["number"]);
        let number = kept.and_then(Value::as_u64);
        number
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(1)
    }

    /// Notes the number of the scaffold that its files are of.
    pub fn set_scaffold(&mut self, number: u32) {
        let kept = serde_json::json!({ "number": number });
        self.plugins.insert(SCAFFOLD.to_owned(), kept);
    }
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// The reader's message without its picture of the file.
fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
