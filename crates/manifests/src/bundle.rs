//! A bundle of a project for the Operator Lifecycle Manager, made from the objects that are deployed without it.
//!
//! The bundle is a ClusterServiceVersion, the definitions, what else is deployed, and annotations that name the package. The
//! manager's Deployment and roles are those of `deploy`, but for certificates: the Lifecycle Manager makes them, mounts them into
//! the pod and tells configurations whom to trust.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::layout::{self, LayoutError, MARK, Settings};
use crate::project::{CertificateSource, Project};
use crate::{Inventory, Webhook, WebhookKind, sample, yaml};

/// Where the bundle is, from the root of a project.
pub const FOLDER: &str = "dist/bundle";
/// The channel that the package is in.
const CHANNEL: &str = "alpha";
/// What begins the names of all annotations of a bundle.
const ANNOTATION: &str = "operators.operatorframework.io.bundle";
const DEFAULT_VERSION: &str = "0.1.0";
const WEBHOOK_PORT: u16 = 9443;

/// The objects that a bundle is made from.
struct Parts<'a> {
    project: &'a Project,
    inventory: &'a Inventory,
    objects: Vec<Value>,
}

/// The files of the bundle, by path from the root of the project.
///
/// # Errors
/// When the objects cannot be made.
pub fn files(
    project: &Project,
    inventory: &Inventory,
    settings: &Settings,
) -> Result<BTreeMap<PathBuf, String>, LayoutError> {
    let mut adjusted = project.clone();
    let mut options = adjusted.options();
    options.certificates = CertificateSource::Secret;
    // Metrics are served with a certificate of their own making: nobody mounts another.
    options.prometheus = false;
    adjusted.set_options(&options);
    let parts = Parts {
        project,
        inventory,
        objects: layout::deployed(&adjusted, inventory, settings)?,
    };
    let header = format!("# {MARK}; `kubewright generate` writes it again.\n");
    let mut files = BTreeMap::new();
    let mut add = |path: String, object: &Value| {
        let text = format!("{header}{}", yaml::document(object));
        files.insert(PathBuf::from(FOLDER).join(path), text);
    };
    let name = &project.project_name;
    let version = parts.service_version()?;
    add(
        format!("manifests/{name}.clusterserviceversion.yaml"),
        &version,
    );
    for object in parts.beside() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
        let file = match object["kind"].as_str() {
            Some("CustomResourceDefinition") => text(&object["metadata"]["name"]),
            _ => format!(
                "{}_{}",
                text(&object["metadata"]["name"]),
                text(&object["kind"])
            ),
        };
        add(format!("manifests/{file}.yaml"), &object);
    }
    add("metadata/annotations.yaml".to_owned(), &annotations(name));
    Ok(files)
}

/// What names the package, its channels and the folders.
fn annotations(name: &str) -> Value {
    let fields = [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", name),
        ("channels.v1", CHANNEL),
        ("channel.default.v1", CHANNEL),
    ];
    let fields = fields.map(|(field, value)| (format!("{ANNOTATION}.{field}"), json!(value)));
    json!({ "annotations": Value::Object(fields.into_iter().collect()) })
}

impl Parts<'_> {
    /// What is in the bundle beside the ClusterServiceVersion. Accounts, their roles and webhook configurations are made from that.
    fn beside(&self) -> Vec<Value> {
        let service = format!("{}-webhook-service", self.project.project_name);
        let is_beside = |object: &&Value| match object["kind"].as_str() {
            Some("CustomResourceDefinition") => true,
            Some("Service") => object["metadata"]["name"] != *service,
            Some("ClusterRole") => !self.is_bound(object),
            _ => false,
        };
        let mut found: Vec<Value> = self.objects.iter().filter(is_beside).cloned().collect();
        for object in &mut found {
            // The namespace is whichever the bundle is installed in.
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("namespace");
            }
        }
        found
    }

    fn bindings(&self) -> impl Iterator<Item = &Value> {
        let is_binding = |object: &&Value| {
            matches!(
                object["kind"].as_str(),
                Some("ClusterRoleBinding" | "RoleBinding")
            )
        };
        self.objects.iter().filter(is_binding)
    }

    /// Whether the manager has a role.
    fn is_bound(&self, role: &Value) -> bool {
        self.bindings().any(|binding| {
            binding["roleRef"]["kind"] == role["kind"]
                && binding["roleRef"]["name"] == role["metadata"]["name"]
        })
    }

    /// The rules of the manager's roles of a kind, in the form of a ClusterServiceVersion.
    fn permissions(&self, kind: &str) -> Value {
        let roles = self.objects.iter().filter(|object| object["kind"] == kind);
        let rules: Vec<Value> = roles
            .filter(|role| self.is_bound(role))
            .flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default())
            .collect();
        let account = format!("{}-controller-manager", self.project.project_name);
        json!([{ "rules": rules, "serviceAccountName": account }])
    }

    fn deployment(&self) -> Value {
        let mut found = self.objects.iter();
        let found = found.find(|object| object["kind"] == "Deployment");
        let mut deployment = found.cloned().unwrap_or_default();
        let pod = &mut deployment["spec"]["template"]["spec"];
        without(pod, "volumes");
        without(&mut pod["containers"][0], "volumeMounts");
        deployment
    }

    /// The version of the package: the tag of the image where that is one.
    fn version(&self) -> String {
        let deployment = self.deployment();
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        let image = image.as_str().unwrap_or_default();
        let tag = image
            .rsplit_once(':')
            .map(|(_, tag)| tag.trim_start_matches('v'));
        let is_version = |tag: &&str| {
            let numbers: Vec<&str> = tag.split('.').collect();
            numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok())
        };
        tag.filter(is_version).unwrap_or(DEFAULT_VERSION).to_owned()
    }

    fn service_version(&self) -> Result<Value, LayoutError> {
        let (name, version) = (&self.project.project_name, self.version());
        let deployment = self.deployment();
        let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        let mut install = json!({
            "clusterPermissions": self.permissions("ClusterRole"),
            "deployments": [{
                "label": deployment["metadata"]["labels"],
                "name": deployment["metadata"]["name"],
                "spec": deployment["spec"],
            }],
        });
        install["permissions"] = self.permissions("Role");
        let mut made = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {
                "annotations": {
                    "alm-examples": self.samples()?,
                    "capabilities": "Basic Install",
                    "containerImage": image,
                },
                "name": format!("{name}.v{version}"),
                "namespace": "placeholder",
            },
            "spec": {
                "customresourcedefinitions": { "owned": self.owned() },
                "description": format!("The operator {name}."),
                "displayName": name,
                "install": { "spec": install, "strategy": "deployment" },
                "installModes": self.modes(),
                "keywords": [name],
                "maturity": CHANNEL,
                "provider": { "name": self.project.domain },
                "relatedImages": [{ "image": image, "name": "manager" }],
                "version": version,
            },
        });
        let webhooks = self.webhooks();
        if !webhooks.is_empty() {
            made["spec"]["webhookdefinitions"] = json!(webhooks);
        }
        Ok(made)
    }

    /// The namespaces in which the operator can be installed to work. One that converts kinds or works everywhere has no choice.
    fn modes(&self) -> Value {
        let converts = self
            .webhooks()
            .iter()
            .any(|hook| hook["type"] == "ConversionWebhook");
        let own = self.project.namespaced && !converts;
        let modes = [
            ("OwnNamespace", own),
            ("SingleNamespace", own),
            ("MultiNamespace", false),
            ("AllNamespaces", !own),
        ];
        json!(modes.map(|(mode, supported)| json!({ "supported": supported, "type": mode })))
    }

    /// The kinds, in each version that is served.
    fn owned(&self) -> Vec<Value> {
        let definitions = self.definitions();
        let each = definitions.iter().flat_map(|definition| {
            let versions = definition["spec"]["versions"]
                .as_array()
                .into_iter()
                .flatten();
            let served = versions.filter(|version| version["served"] == true);
            served.map(|version| {
                let described =
                    &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["description"];
                let kind = &definition["spec"]["names"]["kind"];
                json!({
                    "description": described.as_str().unwrap_or("A kind of this operator."),
                    "displayName": kind,
                    "kind": kind,
                    "name": definition["metadata"]["name"],
                    "version": version["name"],
                })
            })
        });
        each.collect()
    }

    fn definitions(&self) -> Vec<&Value> {
        let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
        self.objects.iter().filter(is_definition).collect()
    }

    /// A sample of each kind in each version, as one text of JSON.
    fn samples(&self) -> Result<String, LayoutError> {
        let mut samples = Vec::new();
        for definition in &self.inventory.definitions {
            let versions = definition.spec.versions.iter().filter(|it| it.served);
            for version in versions {
                let sample = sample::of(definition, &version.name);
                let mut sample = sample.map_err(|error| LayoutError::Definition {
                    name: definition.metadata.name.clone().unwrap_or_default(),
                    reason: error.to_string(),
                })?;
                let kind = definition.spec.names.kind.to_ascii_lowercase();
                sample["metadata"]["name"] = json!(format!("{kind}-sample"));
                samples.push(sample);
            }
        }
        Ok(json!(samples).to_string())
    }

    fn webhooks(&self) -> Vec<Value> {
        let name = format!("{}-controller-manager", self.project.project_name);
        let is_deployed = |kind: &str| self.objects.iter().any(|object| object["kind"] == kind);
        let mut made = Vec::new();
        for hook in &self.inventory.webhooks {
            let (kind, configuration) = match hook.kind {
                WebhookKind::Mutating => {
                    ("MutatingAdmissionWebhook", "MutatingWebhookConfiguration")
                }
                WebhookKind::Validating => (
                    "ValidatingAdmissionWebhook",
                    "ValidatingWebhookConfiguration",
                ),
            };
            // One that others serve is none of the package's.
            if hook.url.is_none() && hook.service_name.is_none() && is_deployed(configuration) {
                made.push(self.admission(hook, kind, &name));
            }
        }
        for definition in self.definitions() {
            let webhook = &definition["spec"]["conversion"]["webhook"];
            if webhook.is_null() {
                continue;
            }
            let plural = definition["spec"]["names"]["plural"]
                .as_str()
                .unwrap_or_default();
            made.push(json!({
                "admissionReviewVersions": webhook["conversionReviewVersions"],
                "containerPort": 443,
                "conversionCRDs": [definition["metadata"]["name"]],
                "deploymentName": name,
                "generateName": format!("c{plural}.{}", self.project.domain),
                "sideEffects": "None",
                "targetPort": WEBHOOK_PORT,
                "type": "ConversionWebhook",
                "webhookPath": webhook["clientConfig"]["service"]["path"],
            }));
        }
        made
    }

    /// A webhook as the configuration that is deployed without the Lifecycle Manager has it.
    fn admission(&self, hook: &Webhook, kind: &str, deployment: &str) -> Value {
        let configured = self.objects.iter().flat_map(|object| {
            let webhooks = object["webhooks"].as_array();
            webhooks.into_iter().flatten()
        });
        let mut configured = configured.filter(|it| it["name"] == *hook.name);
        let mut made = configured.next().cloned().unwrap_or_default();
        without(&mut made, "clientConfig");
        without(&mut made, "name");
        made["containerPort"] = json!(443);
        made["deploymentName"] = json!(deployment);
        made["generateName"] = json!(hook.name);
        made["targetPort"] = json!(WEBHOOK_PORT);
        made["type"] = json!(kind);
        made["webhookPath"] = json!(hook.path);
        made
    }
}

fn without(value: &mut Value, field: &str) {
    if let Some(object) = value.as_object_mut() {
        object.remove(field);
    }
}

#[cfg(test)]
mod tests;
