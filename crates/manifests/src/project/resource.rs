//! A kind in `PROJECT`, and what was scaffolded for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::is_false;
use super::name::{Name, NameError, plural_of};

/// A kind of a project.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// That its type is in this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiFlags>,
    /// Whether it has a controller of the usual name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub controller: bool,
    /// Its controllers of other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<NamedController>,
    /// Whether it is a kind of Kubernetes itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub core: bool,
    /// The image that its objects run, if it was created for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_image: Option<ImageFlags>,
    /// What its group ends with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// Whether its type is somebody else's.
    #[serde(default, skip_serializing_if = "is_false")]
    pub external: bool,
    /// The first part of its group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind, in upper camel case.
    pub kind: String,
    /// Where its type is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its plural, if it is irregular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plural: Option<String>,
    /// The version of the API, such as `v1`.
    pub version: String,
    /// Which webhooks it has, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<WebhookFlags>,
    /// Fields that this version does not know; they are written back unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A controller with a name of its own.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct NamedController {
    /// The name of the controller: a DNS label.
    pub name: String,
}

/// The image of a kind whose objects run it, as kubebuilder's plugin `deploy-image` calls its parts.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ImageFlags {
    /// What runs in the container, instead of what the image says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_command: Vec<String>,
    /// The port on which the program listens, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_port: Option<u16>,
    /// The name of the image that pods run by default.
    pub image: String,
    /// The user that runs the program, if that is not the image's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<u32>,
}

/// How the type of a resource is served.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ApiFlags {
    /// The version of its CustomResourceDefinition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub crd_version: String,
    /// Whether its objects live in namespaces.
    #[serde(default, skip_serializing_if = "is_false")]
    pub namespaced: bool,
    /// Fields that this version does not know; they are written back unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Which webhooks a resource has.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WebhookFlags {
    /// Whether versions are converted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub conversion: bool,
    /// Whether a mutating webhook sets defaults.
    #[serde(default, skip_serializing_if = "is_false")]
    pub defaulting: bool,
    /// Where the mutating webhook is served, if that is not its usual path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaulting_path: Option<String>,
    /// Versions that are converted from the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoke: Vec<String>,
    /// Whether a validating webhook accepts or refuses objects.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validation: bool,
    /// Where the validating webhook is served, if that is not its usual path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_path: Option<String>,
    /// The version of its configurations.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub webhook_version: String,
    /// Fields that this version does not know; they are written back unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Resource {
    /// The group with its domain.
    pub fn qualified_group(&self) -> String {
        match (self.group.is_empty(), self.domain.is_empty()) {
            (true, _) => self.domain.clone(),
            (_, true) => self.group.clone(),
            _ => format!("{}.{}", self.group, self.domain),
        }
    }

    /// The plural, as in paths.
    pub fn plural(&self) -> String {
        let given = self.plural.clone();
        given.unwrap_or_else(|| plural_of(&self.kind))
    }

    /// The kind as a file or module is called.
    pub fn module(&self) -> String {
        self.kind.to_ascii_lowercase()
    }

    /// The names of its controllers: the usual one, which is that of the kind, and others.
    pub fn controller_names(&self) -> Vec<String> {
        let usual = self.controller.then(|| self.module());
        let named = self.controllers.iter();
        usual
            .into_iter()
            .chain(named.map(|controller| controller.name.clone()))
            .collect()
    }

    /// Whether its objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.api.as_ref().is_none_or(|api| api.namespaced)
    }

    pub(super) fn check(&self) -> Result<(), NameError> {
        Name::Kind.check(&self.kind)?;
        Name::Version.check(&self.version)?;
        Name::Group.check(&self.group)?;
        let mut controllers = self.controllers.iter();
        controllers.try_for_each(|controller| Name::Controller.check(&controller.name))?;
        self.plural
            .iter()
            .try_for_each(|plural| Name::Plural.check(plural))
    }
}
