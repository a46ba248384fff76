//! The order of admission, and all that waits: reading the store, calling out, holding locks.

use kubewright_schema::{Table, decode};
use serde_json::{Map, Value};

use super::attributes::{Asked, Operation};
use super::pod_security::{self, Concern, Policy};
use super::quota::{QuotaCheck, QuotaError};
use super::webhook::Reinvocation;
use super::{
    Plugin, certificates, claim_resize, ingress_class, limit_range, lookup, matching, namespace,
    node_taint, priority, runtime_class, service_account, storage_class, storage_protection,
    tolerations,
};
use crate::api::check_size;
use crate::core::Core;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;

const LIMIT_RANGES: (&str, &str, &str) = ("", "v1", "limitranges");
const PRIORITY_CLASSES: (&str, &str, &str) = ("scheduling.k8s.io", "v1", "priorityclasses");
const STORAGE_CLASSES: (&str, &str, &str) = ("storage.k8s.io", "v1", "storageclasses");
const INGRESS_CLASSES: (&str, &str, &str) = ("networking.k8s.io", "v1", "ingressclasses");
const RUNTIME_CLASSES: (&str, &str, &str) = ("node.k8s.io", "v1", "runtimeclasses");
const ACCOUNTS: (&str, &str, &str) = ("", "v1", "serviceaccounts");

impl Core {
    /// Lets those who may change an object change it. `object` is null for a delete, `old` for a create.
    pub(crate) async fn mutate(
        &self,
        asked: &Asked<'_>,
        object: &mut Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        self.mutating_plugins(asked, object, old)?;
        if matching::is_exempt(asked) {
            return Ok(());
        }
        let mut rounds = Reinvocation::default();
        self.mutate_from_outside(asked, object, old, &mut rounds, warnings)
            .await?;
        if rounds.again() {
            self.mutating_plugins(asked, object, old)?;
            self.mutate_from_outside(asked, object, old, &mut rounds, warnings)
                .await?;
        }
        Ok(())
    }

    async fn mutate_from_outside(
        &self,
        asked: &Asked<'_>,
        object: &mut Value,
        old: &Value,
        rounds: &mut Reinvocation,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        rounds.begin(object);
        if self.gate.has(Plugin::MutatingAdmissionPolicy) {
            let policies = &self.gate.hooks.policies;
            policies.mutate(self, asked, object, old, rounds).await?;
        }
        if self.gate.has(Plugin::MutatingAdmissionWebhook) {
            let hooks = &self.gate.hooks.webhooks;
            hooks
                .mutate(self, asked, object, old, rounds, warnings)
                .await?;
        }
        rounds.end(object);
        Ok(())
    }

    async fn inspect_from_outside(
        &self,
        asked: &Asked<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if self.gate.has(Plugin::ValidatingAdmissionPolicy) {
            let policies = &self.gate.hooks.policies;
            policies
                .validate(self, asked, object, old, warnings)
                .await?;
        }
        if self.gate.has(Plugin::ValidatingAdmissionWebhook) {
            let hooks = &self.gate.hooks.webhooks;
            hooks.validate(self, asked, object, old, warnings).await?;
        }
        Ok(())
    }

    /// Brings an object that was changed from outside into the form it has in the request: of the right type, with its
    /// defaults, at the version of the request. Who manages which field is not for others to say.
    pub(super) async fn settle(
        &self,
        asked: &Asked<'_>,
        shown: &Served,
        object: &mut Value,
        before: &Value,
    ) -> Result<(), ApiError> {
        check_size(object)?;
        object::copy_meta(object, before, "managedFields");
        let kind = asked.kind();
        if kind.kind != *asked.served.resource.kind {
            let table = Table::builtin();
            let ty = table.kind(&kind.group, &kind.version, &kind.kind);
            let ty = ty.ok_or_else(|| ApiError::internal(format!("{} is unknown", kind.kind)))?;
            let conformed = decode::conform(table, ty, object);
            return conformed.map(drop).map_err(ApiError::internal);
        }
        shown.conform(object)?;
        shown.default(object);
        if shown.api_version != asked.served.api_version {
            let value = std::mem::take(object);
            *object = self.shown_at(shown, asked.served, value).await?;
            asked.served.default(object);
        }
        Ok(())
    }

    /// Runs validating admission. What comes back has to hold when the object is stored.
    pub(crate) async fn inspect(
        &self,
        asked: &Asked<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Option<QuotaCheck>, ApiError> {
        self.validating_plugins(asked, object, old, warnings)?;
        if !matching::is_exempt(asked) {
            self.inspect_from_outside(asked, object, old, warnings)
                .await?;
        }
        self.quota(asked, object, old)
    }

    fn mutating_plugins(
        &self,
        asked: &Asked<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let has = |plugin| self.gate.has(plugin);
        if has(Plugin::NamespaceLifecycle) {
            namespace::admit(self, asked, object)?;
        }
        if has(Plugin::LimitRanger) && asked.is("", "Pod") && limit_range::concerns(asked, old) {
            for range in lookup::all(self, LIMIT_RANGES, asked.namespace())? {
                limit_range::default(&range, object);
            }
        }
        if has(Plugin::ServiceAccount) && service_account::concerns(asked) {
            self.equip_with_account(asked, object)?;
        }
        if has(Plugin::TaintNodesByCondition) && node_taint::concerns(asked) {
            node_taint::taint(object);
        }
        if has(Plugin::Priority) && priority::concerns(asked) {
            let classes = lookup::all(self, PRIORITY_CLASSES, "")?;
            let assigned = priority::assign(&classes, object);
            assigned.map_err(|why| asked.forbidden(object, &why))?;
        }
        if has(Plugin::DefaultTolerationSeconds) && tolerations::concerns(asked) {
            tolerations::default(object);
        }
        if has(Plugin::DefaultStorageClass) && storage_class::concerns(asked, object) {
            storage_class::default(&lookup::all(self, STORAGE_CLASSES, "")?, object);
        }
        if has(Plugin::StorageObjectInUseProtection)
            && let Some(finalizer) = storage_protection::finalizer(asked)
        {
            storage_protection::protect(finalizer, object);
        }
        if has(Plugin::RuntimeClass)
            && runtime_class::concerns(asked)
            && let Some(class) = self.runtime_class(asked, object)?
        {
            let applied = runtime_class::apply(&class, object);
            applied.map_err(|why| asked.forbidden(object, &why))?;
        }
        if has(Plugin::DefaultIngressClass) && ingress_class::concerns(asked, object) {
            ingress_class::default(&lookup::all(self, INGRESS_CLASSES, "")?, object);
        }
        Ok(())
    }

    /// The runtime class that a pod names, which must be there.
    fn runtime_class(&self, asked: &Asked<'_>, pod: &Value) -> Result<Option<Value>, ApiError> {
        let Some(name) = pod["spec"]["runtimeClassName"].as_str() else {
            return Ok(None);
        };
        match lookup::one(self, RUNTIME_CLASSES, None, name)? {
            Some(class) => Ok(Some(class)),
            None => Err(asked.forbidden(pod, &runtime_class::not_found(name))),
        }
    }

    fn equip_with_account(&self, asked: &Asked<'_>, pod: &mut Value) -> Result<(), ApiError> {
        if service_account::is_mirror(pod) {
            return Ok(());
        }
        let name = service_account::name(pod);
        let account = self.account(asked, pod, &name)?;
        let suffix = self.environment.name_suffix();
        service_account::equip(&account, pod, &suffix);
        Ok(())
    }

    fn account(&self, asked: &Asked<'_>, pod: &Value, name: &str) -> Result<Value, ApiError> {
        let namespace = asked.namespace();
        let found = lookup::one(self, ACCOUNTS, Some(namespace), name)?;
        found.ok_or_else(|| {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
            );
            asked.forbidden(pod, &why)
        })
    }

    fn validating_plugins(
        &self,
        asked: &Asked<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let has = |plugin| self.gate.has(plugin);
        let forbidden = |why: String| asked.forbidden(object, &why);
        if has(Plugin::LimitRanger) && limit_range::concerns(asked, old) {
            let kind = &asked.served.resource.kind;
            for range in lookup::all(self, LIMIT_RANGES, asked.namespace())? {
                limit_range::validate(&range, kind, object).map_err(forbidden)?;
            }
        }
        if has(Plugin::ServiceAccount) && service_account::concerns(asked) {
            self.check_account(asked, object)?;
        }
        if has(Plugin::ServiceAccount) && service_account::concerns_ephemeral(asked) {
            let name = object["spec"]["serviceAccountName"].as_str().unwrap_or("");
            let account = self.account(asked, object, name)?;
            service_account::validate_ephemeral(&account, object).map_err(forbidden)?;
        }
        if has(Plugin::PodSecurity)
            && let Some(concern) = pod_security::concern(asked, object, old)
        {
            self.pod_security(asked, concern, object, old, warnings)?;
        }
        let is_class = asked.is_whole("scheduling.k8s.io", "PriorityClass");
        if has(Plugin::Priority) && is_class && asked.operation != Operation::Delete {
            let classes = lookup::all(self, PRIORITY_CLASSES, "")?;
            priority::validate(asked.operation, &classes, object).map_err(forbidden)?;
        }
        self.validating_class_plugins(asked, object, old)
    }

    /// The plugins that look at what an object's class or signer says.
    fn validating_class_plugins(
        &self,
        asked: &Asked<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let has = |plugin| self.gate.has(plugin);
        let forbidden = |why: String| asked.forbidden(object, &why);
        if has(Plugin::PersistentVolumeClaimResize) && claim_resize::concerns(asked, object, old) {
            let name = claim_resize::class_name(object);
            let class = lookup::one(self, STORAGE_CLASSES, None, name)?;
            claim_resize::check(class.as_ref(), object, old).map_err(forbidden)?;
        }
        if has(Plugin::RuntimeClass) && runtime_class::concerns(asked) {
            let class = self.runtime_class(asked, object)?;
            runtime_class::validate(class.as_ref(), object).map_err(forbidden)?;
        }
        if has(Plugin::CertificateApproval) {
            certificates::check_approval(self, asked, old).map_err(forbidden)?;
        }
        if has(Plugin::CertificateSigning) {
            certificates::check_signing(self, asked, object, old).map_err(forbidden)?;
        }
        if has(Plugin::CertificateSubjectRestriction) {
            certificates::check_subject(asked, object).map_err(forbidden)?;
        }
        Ok(())
    }

    fn check_account(&self, asked: &Asked<'_>, pod: &Value) -> Result<(), ApiError> {
        let forbidden = |why: String| asked.forbidden(pod, &why);
        if service_account::is_mirror(pod) {
            return service_account::validate_mirror(pod).map_err(forbidden);
        }
        let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or("");
        if name.is_empty() {
            let (namespace, pod) = (asked.namespace(), object::name(pod));
            return Err(forbidden(format!(
                "no service account specified for pod {namespace}/{pod}"
            )));
        }
        let account = self.account(asked, pod, name)?;
        service_account::validate_secrets(&account, pod).map_err(forbidden)
    }

    fn pod_security(
        &self,
        asked: &Asked<'_>,
        concern: Concern,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if concern == Concern::Namespace {
            return self.namespace_security(asked, object, old, warnings);
        }
        let namespace = asked.namespace();
        let Some(record) = lookup::namespaces(self).collection.get(namespace) else {
            let why = format!("failed to lookup namespace {namespace:?}");
            return Err(ApiError::internal(why));
        };
        let labels: Map<String, Value> = record
            .labels()
            .iter()
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        let (policy, _) = Policy::read(&Value::Object(labels));
        if policy.is_privileged() {
            return Ok(());
        }
        let template = pod_security::template(&asked.served.resource.kind, object);
        let verdict = pod_security::judge(&policy, concern, template);
        extend(warnings, verdict.warning);
        match verdict.refusal {
            Some(why) => Err(asked.forbidden(object, &why)),
            None => Ok(()),
        }
    }

    fn namespace_security(
        &self,
        asked: &Asked<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let (policy, errors) = Policy::read(&object["metadata"]["labels"]);
        let (before, old_errors) = Policy::read(&old["metadata"]["labels"]);
        let is_update = asked.operation == Operation::Update;
        let known = is_update && errors == old_errors;
        if !errors.is_empty() && !known {
            return Err(asked.invalid(object, &errors));
        }
        if is_update {
            let name = object::name(object);
            let pods = || lookup::all(self, ("", "v1", "pods"), name).unwrap_or_default();
            extend(
                warnings,
                pod_security::judge_namespace(name, &policy, &before, pods),
            );
        }
        Ok(())
    }

    /// Checks the quotas of the namespace. Within the commit they are checked again, because another write may come
    /// first; here so that a dry run and a request that fails later are refused as well.
    fn quota(
        &self,
        asked: &Asked<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<Option<QuotaCheck>, ApiError> {
        let on = self.gate.has(Plugin::ResourceQuota);
        let Some(namespace) = asked.namespace.filter(|_| on) else {
            return Ok(None);
        };
        let ledger = &self.derived.quotas;
        if !ledger.concerns(namespace) {
            return Ok(None);
        }
        let check = QuotaCheck::new(asked, namespace, object, self.environment.now_rfc3339());
        if !check.measure().concerns(asked, object, old) {
            return Ok(None);
        }
        ledger.count(namespace, &self.registry.now());
        match ledger.check(&check) {
            Err(QuotaError::Exceeded(why)) => Err(asked.forbidden(object, &why)),
            // A quota that came this moment; the commit looks again.
            Ok(()) | Err(QuotaError::Uncounted) => Ok(Some(check)),
        }
    }
}

/// Adds warnings that have not been given yet.
pub(super) fn extend(warnings: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for warning in more {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}
