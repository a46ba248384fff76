//! What a program says of itself: its kinds, what it may do, its webhooks. Passed between programs as JSON.

use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

/// The format that is written. It is counted up when somebody who reads an older one would miss something that matters.
pub const FORMAT: u32 = 1;

/// All that a program registered at link time.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// The format of this: [`FORMAT`], or 0 for programs that knew none.
    #[serde(default)]
    pub format: u32,
    /// A definition for each kind, with all its versions, sorted by name.
    pub definitions: Vec<CustomResourceDefinition>,
    /// What its controllers may do, as it was declared and inferred; not merged yet.
    pub rules: Vec<Rule>,
    /// The admission webhooks that it serves.
    pub webhooks: Vec<Webhook>,
    /// The names of its controllers, sorted.
    pub controllers: Vec<String>,
    /// The kinds that it converts, sorted.
    #[serde(default)]
    pub conversions: Vec<Converted>,
}

/// A kind and its versions that a program converts to one another.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct Converted {
    /// The API group of the kind.
    pub group: String,
    /// The name of the kind.
    pub kind: String,
    /// The versions that it converts, sorted.
    pub versions: Vec<String>,
}

/// A program's inventory is of a format that is not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the program was built with a newer toolkit than this command: its inventory has format {found}, and {FORMAT} is the newest \
     that is known here; install a newer kubewright command"
)]
pub struct NewerFormat {
    found: u32,
}

impl Inventory {
    /// Fails if somebody newer wrote it: what is not known here would be left out silently.
    ///
    /// # Errors
    /// When its format is newer than [`FORMAT`].
    pub fn check_format(&self) -> Result<(), NewerFormat> {
        if self.format > FORMAT {
            return Err(NewerFormat { found: self.format });
        }
        Ok(())
    }
}

/// A permission, as in an `rbac` attribute.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// API groups; the core group is the empty text.
    pub groups: Vec<String>,
    /// Resources, with `/status` and the like for subresources.
    pub resources: Vec<String>,
    /// Only objects of these names.
    pub resource_names: Vec<String>,
    /// Paths that are not resources.
    pub urls: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
    /// A Role in this namespace instead of the ClusterRole.
    pub namespace: Option<String>,
    /// A role of another name than the manager's.
    pub role: Option<String>,
}

/// Whether a webhook changes objects or validates them.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub enum WebhookKind {
    /// It may change objects before they are stored.
    Mutating,
    /// Accepts or refuses them.
    Validating,
}

/// An admission webhook, as in a `webhook` attribute. What is left out has the default of the API.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Whether it changes or validates.
    pub kind: WebhookKind,
    /// Its name: a domain name of three parts at least.
    pub name: String,
    /// Where on the manager's webhook port it is served.
    pub path: String,
    /// The API groups that it is called for.
    pub groups: Vec<String>,
    /// The versions of these groups that it is called for.
    pub versions: Vec<String>,
    /// The plurals of the resources that it is called for.
    pub resources: Vec<String>,
    /// `create`, `update`, `delete`, `connect` or `*`.
    pub verbs: Vec<String>,
    /// What happens when it does not answer: `Fail` or `Ignore`.
    pub failure_policy: Option<String>,
    /// Whether other versions of a resource match too: `Exact` or `Equivalent`.
    pub match_policy: Option<String>,
    /// Whether it changes anything but the object: `None` or `NoneOnDryRun`.
    pub side_effects: Option<String>,
    /// How long it may take.
    pub timeout_seconds: Option<i32>,
    /// Whether it is called again after later webhooks changed the object: `Never` or `IfNeeded`.
    pub reinvocation_policy: Option<String>,
    /// Versions of `AdmissionReview` that it understands.
    pub admission_review_versions: Vec<String>,
    /// Where it is served, if that is not the manager: then it has no path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The service that leads to it, if that is not the manager's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// The namespace of that service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_namespace: Option<String>,
    /// The port of that service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_port: Option<i32>,
    /// Only objects in namespaces with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Only objects with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<LabelSelector>,
    /// Only requests for which all of these expressions of CEL hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
}
