//! Admission: what stands between a request that may be made and an object that is stored.
//!
//! The order is the one of Kubernetes. First those that change the object: plugins, mutating policies, mutating
//! webhooks, and all of them once more when one of the latter changed something. Then the kind's own validation,
//! which is not here. Then those that only look: plugins, validating policies, validating webhooks, quota last.
//!
//! Each plugin is a file with a pure decision over the object and what the store has; [`chain`] reads the store,
//! calls out, and keeps the order.

mod attributes;
mod authority;
mod cache;
mod certificates;
mod chain;
mod claim_resize;
mod connect;
mod errors;
mod expression;
mod hooks;
mod ingress_class;
mod limit_range;
mod lookup;
mod matching;
mod namespace;
mod node_taint;
mod pod_resize;
mod pod_security;
mod policy;
mod priority;
mod quota;
mod resources;
mod runtime_class;
mod service_account;
mod storage_class;
mod storage_protection;
mod tolerations;
mod webhook;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use crate::access::Access;
use crate::converter::Converter;
use crate::environment::Environment;
use crate::registry::Registry;
use crate::resource::Served;
use crate::status::ApiError;

pub(crate) use attributes::{AdmissionRequest, Operation, Requester};
pub(crate) use connect::read as connect_options;
pub(crate) use errors::{PluginRefusal, PolicyError};
pub(crate) use hooks::Hooks;
pub(crate) use quota::{Ledger, QuotaCheck, QuotaError};

/// A part of admission that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Plugin {
    /// Nothing is created where there is no namespace, or one that is going.
    NamespaceLifecycle,
    /// Pods get default requests and limits, and stay within those of their namespace.
    LimitRanger,
    /// Pods run as a service account that exists, and get its token.
    ServiceAccount,
    /// New nodes take no pods until a controller has seen that they are ready.
    TaintNodesByCondition,
    /// Pods keep to the security standard that their namespace's labels name.
    PodSecurity,
    /// Pods get the number of their priority class.
    Priority,
    /// Pods stay for five minutes on a node that is not ready or out of reach.
    DefaultTolerationSeconds,
    /// Claims get the storage class that is marked as the default.
    DefaultStorageClass,
    /// Claims and volumes stay until nobody uses them.
    StorageObjectInUseProtection,
    /// Claims grow only where their storage class allows it.
    PersistentVolumeClaimResize,
    /// Pods have the overhead and the nodes of their runtime class, which exists.
    RuntimeClass,
    /// Certificates are approved by those who may do so for their signer.
    CertificateApproval,
    /// Certificates are signed by those who may do so for their signer.
    CertificateSigning,
    /// Trust bundles of a signer are written by those who may attest for it.
    ClusterTrustBundleAttest,
    /// Nobody asks for a certificate of the administrators' group.
    CertificateSubjectRestriction,
    /// Ingresses get the class that is marked as the default.
    DefaultIngressClass,
    /// Pods are resized no further than their node has resources.
    PodResizeValidator,
    /// Calls the MutatingAdmissionPolicies that match.
    MutatingAdmissionPolicy,
    /// Calls the webhooks of MutatingWebhookConfigurations that match.
    MutatingAdmissionWebhook,
    /// Calls the ValidatingAdmissionPolicies that match.
    ValidatingAdmissionPolicy,
    /// Calls the webhooks of ValidatingWebhookConfigurations that match.
    ValidatingAdmissionWebhook,
    /// Namespaces use no more than their quota.
    ResourceQuota,
}

impl Plugin {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Plugin; 22] = [
        Plugin::NamespaceLifecycle,
        Plugin::LimitRanger,
        Plugin::ServiceAccount,
        Plugin::TaintNodesByCondition,
        Plugin::PodSecurity,
        Plugin::Priority,
        Plugin::DefaultTolerationSeconds,
        Plugin::DefaultStorageClass,
        Plugin::StorageObjectInUseProtection,
        Plugin::PersistentVolumeClaimResize,
        Plugin::RuntimeClass,
        Plugin::CertificateApproval,
        Plugin::CertificateSigning,
        Plugin::ClusterTrustBundleAttest,
        Plugin::CertificateSubjectRestriction,
        Plugin::DefaultIngressClass,
        Plugin::PodResizeValidator,
        Plugin::MutatingAdmissionPolicy,
        Plugin::MutatingAdmissionWebhook,
        Plugin::ValidatingAdmissionPolicy,
        Plugin::ValidatingAdmissionWebhook,
        Plugin::ResourceQuota,
    ];

    /// The name that `--enable-admission-plugins` of a real server takes.
    pub fn name(self) -> &'static str {
        match self {
            Plugin::NamespaceLifecycle => "NamespaceLifecycle",
            Plugin::LimitRanger => "LimitRanger",
            Plugin::ServiceAccount => "ServiceAccount",
            Plugin::TaintNodesByCondition => "TaintNodesByCondition",
            Plugin::PodSecurity => "PodSecurity",
            Plugin::Priority => "Priority",
            Plugin::DefaultTolerationSeconds => "DefaultTolerationSeconds",
            Plugin::DefaultStorageClass => "DefaultStorageClass",
            Plugin::StorageObjectInUseProtection => "StorageObjectInUseProtection",
            Plugin::PersistentVolumeClaimResize => "PersistentVolumeClaimResize",
            Plugin::RuntimeClass => "RuntimeClass",
            Plugin::CertificateApproval => "CertificateApproval",
            Plugin::CertificateSigning => "CertificateSigning",
            Plugin::ClusterTrustBundleAttest => "ClusterTrustBundleAttest",
            Plugin::CertificateSubjectRestriction => "CertificateSubjectRestriction",
            Plugin::DefaultIngressClass => "DefaultIngressClass",
            Plugin::PodResizeValidator => "PodResizeValidator",
            Plugin::MutatingAdmissionPolicy => "MutatingAdmissionPolicy",
            Plugin::MutatingAdmissionWebhook => "MutatingAdmissionWebhook",
            Plugin::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
            Plugin::ValidatingAdmissionWebhook => "ValidatingAdmissionWebhook",
            Plugin::ResourceQuota => "ResourceQuota",
        }
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no plugin has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no admission plugin {0:?}")]
pub struct UnknownPlugin(String);

impl FromStr for Plugin {
    type Err = UnknownPlugin;

    fn from_str(name: &str) -> Result<Self, UnknownPlugin> {
        let found = Plugin::ALL.into_iter().find(|plugin| plugin.name() == name);
        found.ok_or_else(|| UnknownPlugin(name.to_owned()))
    }
}

/// Which plugins a server asks. By default all but three that need controllers: without one that makes the account
/// `default` in every namespace, [`Plugin::ServiceAccount`] would refuse every pod, without one that takes the finalizers of
/// [`Plugin::StorageObjectInUseProtection`] away, no claim would ever go, and without one that takes the taint of
/// [`Plugin::TaintNodesByCondition`] away, no pod would go to a node.
///
/// # Examples
/// ```
/// use kubewright_server::{Admission, Plugin};
///
/// let admission = Admission::default()
///     .enable(Plugin::ServiceAccount)
///     .disable(Plugin::PodSecurity);
/// assert!(admission.has(Plugin::ServiceAccount));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Admission(BTreeSet<Plugin>);

impl Default for Admission {
    fn default() -> Self {
        Self(Plugin::ALL.into())
            .disable(Plugin::ServiceAccount)
            .disable(Plugin::StorageObjectInUseProtection)
            .disable(Plugin::TaintNodesByCondition)
    }
}

impl Admission {
    /// No plugin at all.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Asks this plugin too.
    pub fn enable(mut self, plugin: Plugin) -> Self {
        self.0.insert(plugin);
        self
    }

    /// Does not ask this plugin.
    pub fn disable(mut self, plugin: Plugin) -> Self {
        self.0.remove(&plugin);
        self
    }

    /// Whether this plugin is asked.
    pub fn has(&self, plugin: Plugin) -> bool {
        self.0.contains(&plugin)
    }
}

/// Admission of one server: which plugins are asked, and all that they ask in turn.
pub(crate) struct AdmissionChain {
    pub(crate) plugins: Admission,
    /// What is compiled from the stored webhook configurations and policies.
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) quotas: Arc<Ledger>,
    pub(crate) access: Arc<Access>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) environment: Environment,
    pub(crate) converter: Arc<Converter>,
}

impl AdmissionChain {
    fn has(&self, plugin: Plugin) -> bool {
        self.plugins.has(plugin)
    }
}

/// Admission of one request.
#[derive(Clone, Copy)]
struct AdmissionContext<'a> {
    chain: &'a AdmissionChain,
    request: &'a AdmissionRequest<'a>,
}

impl AdmissionContext<'_> {
    /// An object of the request at the version at which it is shown. Subresources with a kind of their own have one
    /// version.
    async fn shown_at(&self, shown: &Served, object: Value) -> Result<Value, ApiError> {
        let served = self.request.served;
        self.chain.converter.shown_at(served, shown, object).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_found_by_their_names() {
        for plugin in Plugin::ALL {
            assert_eq!(plugin.name().parse(), Ok(plugin));
        }
        assert!("AlwaysDeny".parse::<Plugin>().is_err());
    }

    #[test]
    fn service_accounts_are_asked_for_on_demand() {
        let by_default = Admission::default();
        assert!(!by_default.has(Plugin::ServiceAccount));
        assert!(by_default.has(Plugin::LimitRanger));
        assert!(!Admission::none().has(Plugin::LimitRanger));
    }
}
