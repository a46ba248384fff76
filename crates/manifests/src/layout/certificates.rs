//! What the manager serves with: a Secret that it fills itself and the permission to, or the objects of cert-manager.

use serde_json::{Value, json};

use super::manager::METRICS_SERVICE;
use super::rbac::one_or_list;
use super::{LayoutError, Operator, Tree, conversion};
use crate::project::CertificateSource;

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const CERT_MANAGER: &str = "cert-manager.io/v1";
/// The Secret that the manager fills.
const OWN: &str = "server-cert";
/// The Secrets that others fill, by what is served with them.
const WEBHOOK: &str = "webhook-server-cert";
const METRICS: &str = "metrics-server-cert";
const WEBHOOK_SERVICE: &str = "webhook-service";

/// A certificate that is mounted into the manager's pod.
pub(super) struct Mounted {
    pub(super) volume: &'static str,
    pub(super) path: &'static str,
    pub(super) flag: &'static str,
    pub(super) secret: String,
}

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    if !operator.has_webhooks() && !operator.options.prometheus {
        return Ok(());
    }
    match operator.options.certificates {
        CertificateSource::Manager => add_own(operator, tree),
        CertificateSource::CertManager => add_cert_manager(operator, tree),
        CertificateSource::Secret => Ok(()),
    }
}

/// The Secret is there from the start, so that nobody needs to be allowed to create Secrets.
fn add_own(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": operator.namespaced(OWN),
        "type": "Opaque",
    });
    tree.add("manager/certificates.yaml", secret)?;
    let roles = own_roles(operator);
    let bindings: Vec<Value> = roles.iter().map(|role| operator.binding(role)).collect();
    tree.add("rbac/certificates_role.yaml", one_or_list(roles))?;
    tree.add("rbac/certificates_role_binding.yaml", one_or_list(bindings))
}

/// What the manager has to do with its Secret, and with the objects that have to trust what is in it: these and no others.
fn own_roles(operator: &Operator<'_>) -> Vec<Value> {
    let secret = rule("", "secrets", &[operator.name(OWN)], &["get", "update"]);
    let mut roles = vec![json!({
        "apiVersion": RBAC,
        "kind": "Role",
        "metadata": operator.namespaced("certificates-role"),
        "rules": [secret],
    })];
    let mut rules: Vec<Value> = Vec::new();
    if operator.has_webhooks() {
        for kind in operator.configurations() {
            let resource = format!("{kind}webhookconfigurations");
            let name = operator.name(&format!("{kind}-webhook-configuration"));
            rules.push(rule(
                "admissionregistration.k8s.io",
                &resource,
                &[name],
                &["get", "patch"],
            ));
        }
        let definitions = operator.inventory.definitions.iter();
        let converted: Vec<String> = definitions
            .filter(|definition| conversion::is_by_webhook(definition))
            .filter_map(|definition| definition.metadata.name.clone())
            .collect();
        if !converted.is_empty() {
            let resource = "customresourcedefinitions";
            rules.push(rule(
                "apiextensions.k8s.io",
                resource,
                &converted,
                &["get", "patch"],
            ));
        }
    }
    if !rules.is_empty() {
        roles.push(json!({
            "apiVersion": RBAC,
            "kind": "ClusterRole",
            "metadata": operator.metadata("certificates-role"),
            "rules": rules,
        }));
    }
    roles
}

fn rule(group: &str, resource: &str, names: &[String], verbs: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "resourceNames": names,
        "resources": [resource],
        "verbs": verbs,
    })
}

fn add_cert_manager(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let issuer = json!({
        "apiVersion": CERT_MANAGER,
        "kind": "Issuer",
        "metadata": operator.namespaced("selfsigned-issuer"),
        "spec": { "selfSigned": {} },
    });
    tree.add("certmanager/issuer.yaml", issuer)?;
    if operator.has_webhooks() {
        let webhooks = certificate(operator, "serving-cert", WEBHOOK_SERVICE, WEBHOOK);
        tree.add("certmanager/certificate-webhook.yaml", webhooks)?;
    }
    if operator.options.prometheus {
        let metrics = certificate(operator, "metrics-certs", METRICS_SERVICE, METRICS);
        tree.add("certmanager/certificate-metrics.yaml", metrics)?;
    }
    Ok(())
}

fn certificate(operator: &Operator<'_>, name: &str, service: &str, secret: &str) -> Value {
    let host = format!(
        "{}.{}.svc",
        operator.name(service),
        operator.project.namespace()
    );
    json!({
        "apiVersion": CERT_MANAGER,
        "kind": "Certificate",
        "metadata": operator.namespaced(name),
        "spec": {
            "dnsNames": [host, format!("{host}.cluster.local")],
            "issuerRef": { "kind": "Issuer", "name": operator.name("selfsigned-issuer") },
            "secretName": operator.name(secret),
        },
    })
}

impl Operator<'_> {
    /// Whether the manager makes its certificates itself.
    fn has_own_certificates(&self) -> bool {
        let wanted = self.has_webhooks() || self.options.prometheus;
        wanted && self.options.certificates == CertificateSource::Manager
    }

    /// What tells the manager about the certificates that it makes itself.
    pub(super) fn certificate_arguments(&self) -> Vec<String> {
        if !self.has_own_certificates() {
            return Vec::new();
        }
        let mut arguments = vec![format!("--cert-secret={}", self.name(OWN))];
        if self.has_webhooks() {
            arguments.push(format!("--cert-service={}", self.name(WEBHOOK_SERVICE)));
        }
        if self.options.prometheus {
            arguments.push(format!("--cert-service={}", self.name(METRICS_SERVICE)));
        }
        if self.has_webhooks() {
            for kind in self.configurations() {
                let flag = format!("--{kind}-webhook-configuration");
                let name = self.name(&format!("{kind}-webhook-configuration"));
                arguments.push(format!("{flag}={name}"));
            }
        }
        arguments
    }

    /// The certificates that others make, as they are mounted.
    pub(super) fn mounted(&self) -> Vec<Mounted> {
        if self.options.certificates == CertificateSource::Manager {
            return Vec::new();
        }
        let metrics = self.options.prometheus.then(|| Mounted {
            volume: "metrics-certs",
            path: "/tmp/k8s-metrics-server/metrics-certs",
            flag: "--metrics-cert-path",
            secret: self.name(METRICS),
        });
        let webhooks = self.has_webhooks().then(|| Mounted {
            volume: "webhook-certs",
            path: "/tmp/k8s-webhook-server/serving-certs",
            flag: "--webhook-cert-path",
            secret: self.name(WEBHOOK),
        });
        metrics.into_iter().chain(webhooks).collect()
    }

    /// The Secret whose `ca.crt` those trust who scrape metrics.
    pub(super) fn metrics_secret(&self) -> String {
        match self.options.certificates {
            CertificateSource::Manager => self.name(OWN),
            _ => self.name(METRICS),
        }
    }

    /// Has cert-manager tell an object whom to trust, where cert-manager makes the certificates.
    pub(super) fn annotate_authority(&self, object: &mut Value) {
        if self.options.certificates == CertificateSource::CertManager
            && !self.options.without_webhooks
        {
            let from = format!("{}/{}", self.project.namespace(), self.name("serving-cert"));
            object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = json!(from);
        }
    }
}
