//! The order of admission, and all that waits: reading the store, calling out, holding locks.

use kubewright_schema::{Table, decode};
use serde_json::{Map, Value};

use super::attributes::{AdmissionRequest, Operation};
use super::pod_security::{self, Concern, Policy};
use super::quota::{QuotaCheck, QuotaError};
use super::webhook::Reinvocation;
use super::{
    AdmissionChain, AdmissionContext, Plugin, PluginRefusal, certificates, claim_resize, connect,
    ingress_class, limit_range, lookup, matching, namespace, node_taint, pod_resize, priority,
    runtime_class, service_account, storage_class, storage_protection, tolerations,
};
use crate::http::body::check_size;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;

const LIMIT_RANGES: (&str, &str, &str) = ("", "v1", "limitranges");
const PRIORITY_CLASSES: (&str, &str, &str) = ("scheduling.k8s.io", "v1", "priorityclasses");
const STORAGE_CLASSES: (&str, &str, &str) = ("storage.k8s.io", "v1", "storageclasses");
const INGRESS_CLASSES: (&str, &str, &str) = ("networking.k8s.io", "v1", "ingressclasses");
const RUNTIME_CLASSES: (&str, &str, &str) = ("node.k8s.io", "v1", "runtimeclasses");
const NODES: (&str, &str, &str) = ("", "v1", "nodes");
const ACCOUNTS: (&str, &str, &str) = ("", "v1", "serviceaccounts");

impl AdmissionChain {
    /// Runs mutating admission. `object` is null for a delete, `old` for a create.
    pub(crate) async fn mutate(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        self.mutating_plugins(request, object, old)?;
        if matching::is_exempt(request) {
            return Ok(());
        }
        let mut rounds = Reinvocation::default();
        self.mutate_from_outside(request, object, old, &mut rounds)
            .await?;
        if rounds.again() {
            self.mutating_plugins(request, object, old)?;
            self.mutate_from_outside(request, object, old, &mut rounds)
                .await?;
        }
        Ok(())
    }

    async fn mutate_from_outside(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        old: &Value,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        let cx = AdmissionContext {
            chain: self,
            request,
        };
        rounds.begin(object);
        if self.has(Plugin::MutatingAdmissionPolicy) {
            let policies = &self.hooks.policies;
            policies.mutate(cx, object, old, rounds).await?;
        }
        if self.has(Plugin::MutatingAdmissionWebhook) {
            let hooks = &self.hooks.webhooks;
            hooks.mutate(cx, object, old, rounds).await?;
        }
        rounds.end(object);
        Ok(())
    }

    async fn inspect_from_outside(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let cx = AdmissionContext {
            chain: self,
            request,
        };
        if self.has(Plugin::ValidatingAdmissionPolicy) {
            let policies = &self.hooks.policies;
            policies.validate(cx, object, old).await?;
        }
        if self.has(Plugin::ValidatingAdmissionWebhook) {
            let hooks = &self.hooks.webhooks;
            hooks.validate(cx, object, old).await?;
        }
        Ok(())
    }

    /// Brings an object that was changed from outside into the form it has in the request: of the right type, with its
    /// defaults, at the version of the request. Who manages which field is not for others to say.
    pub(super) async fn normalize(
        &self,
        request: &AdmissionRequest<'_>,
        shown: &Served,
        object: &mut Value,
        before: &Value,
    ) -> Result<(), ApiError> {
        check_size(object)?;
        object::copy_meta(object, before, "managedFields");
        let kind = request.kind();
        if request.operation == Operation::Connect {
            let conformed = connect::conform(&kind.kind, object);
            return conformed.map_err(ApiError::internal);
        }
        if kind.kind != *request.served.resource.kind {
            let table = Table::builtin();
            let ty = table.kind(&kind.group, &kind.version, &kind.kind);
            let ty = ty.ok_or_else(|| ApiError::internal(format!("{} is unknown", kind.kind)))?;
            let conformed = decode::conform(table, ty, object);
            return conformed.map(drop).map_err(ApiError::internal);
        }
        shown.conform(object).map_err(|e| shown.refuse(&e))?;
        shown.default(object);
        if shown.api_version != request.served.api_version {
            let value = std::mem::take(object);
            *object = self
                .converter
                .shown_at(shown, request.served, value)
                .await?;
            request.served.default(object);
        }
        Ok(())
    }

    /// Runs validating admission. What comes back has to hold when the object is stored.
    pub(crate) async fn inspect(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<Option<QuotaCheck>, ApiError> {
        if request.operation != Operation::Connect {
            self.validating_plugins(request, object, old)?;
        }
        if !matching::is_exempt(request) {
            self.inspect_from_outside(request, object, old).await?;
        }
        self.quota(request, object, old)
    }

    fn mutating_plugins(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        // Of all plugins only webhooks and policies are about connections.
        if request.operation == Operation::Connect {
            return Ok(());
        }
        let has = |plugin| self.has(plugin);
        if has(Plugin::NamespaceLifecycle) {
            namespace::admit(self, request, object)?;
        }
        if has(Plugin::LimitRanger) && request.is("", "Pod") && limit_range::concerns(request, old)
        {
            for range in lookup::all(self, LIMIT_RANGES, request.namespace())? {
                limit_range::default(&range, object);
            }
        }
        if has(Plugin::ServiceAccount) && service_account::concerns(request) {
            self.equip_with_account(request, object)?;
        }
        if has(Plugin::TaintNodesByCondition) && node_taint::concerns(request) {
            node_taint::taint(object);
        }
        if has(Plugin::Priority) && priority::concerns(request) {
            let classes = lookup::all(self, PRIORITY_CLASSES, "")?;
            let assigned = priority::assign(&classes, object);
            assigned.map_err(|why| request.forbidden(object, &why.to_string()))?;
        }
        if has(Plugin::DefaultTolerationSeconds) && tolerations::concerns(request) {
            tolerations::default(object);
        }
        if has(Plugin::DefaultStorageClass) && storage_class::concerns(request, object) {
            storage_class::default(&lookup::all(self, STORAGE_CLASSES, "")?, object);
        }
        if has(Plugin::StorageObjectInUseProtection)
            && let Some(finalizer) = storage_protection::finalizer(request)
        {
            storage_protection::protect(finalizer, object);
        }
        if has(Plugin::RuntimeClass)
            && runtime_class::concerns(request)
            && let Some(class) = self.runtime_class(request, object)?
        {
            let applied = runtime_class::apply(&class, object);
            applied.map_err(|why| request.forbidden(object, &why.to_string()))?;
        }
        if has(Plugin::DefaultIngressClass) && ingress_class::concerns(request, object) {
            ingress_class::default(&lookup::all(self, INGRESS_CLASSES, "")?, object);
        }
        Ok(())
    }

    /// The runtime class that a pod names, which must be there.
    fn runtime_class(
        &self,
        request: &AdmissionRequest<'_>,
        pod: &Value,
    ) -> Result<Option<Value>, ApiError> {
        let Some(name) = pod["spec"]["runtimeClassName"].as_str() else {
            return Ok(None);
        };
        match lookup::one(self, RUNTIME_CLASSES, None, name)? {
            Some(class) => Ok(Some(class)),
            None => Err(request.forbidden(pod, &runtime_class::not_found(name))),
        }
    }

    fn equip_with_account(
        &self,
        request: &AdmissionRequest<'_>,
        pod: &mut Value,
    ) -> Result<(), ApiError> {
        if service_account::is_mirror(pod) {
            return Ok(());
        }
        let name = service_account::name(pod);
        let account = self.account(request, pod, &name)?;
        let suffix = self.environment.name_suffix();
        service_account::equip(&account, pod, &suffix);
        Ok(())
    }

    fn account(
        &self,
        request: &AdmissionRequest<'_>,
        pod: &Value,
        name: &str,
    ) -> Result<Value, ApiError> {
        let namespace = request.namespace();
        let found = lookup::one(self, ACCOUNTS, Some(namespace), name)?;
        found.ok_or_else(|| {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
            );
            request.forbidden(pod, &why)
        })
    }

    fn validating_plugins(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let has = |plugin| self.has(plugin);
        let forbidden = |why: PluginRefusal| request.forbidden(object, &why.to_string());
        if has(Plugin::LimitRanger) && limit_range::concerns(request, old) {
            let kind = &request.served.resource.kind;
            for range in lookup::all(self, LIMIT_RANGES, request.namespace())? {
                limit_range::validate(&range, kind, object).map_err(forbidden)?;
            }
        }
        if has(Plugin::ServiceAccount) && service_account::concerns(request) {
            self.check_account(request, object)?;
        }
        if has(Plugin::ServiceAccount) && service_account::concerns_ephemeral(request) {
            let name = object["spec"]["serviceAccountName"].as_str().unwrap_or("");
            let account = self.account(request, object, name)?;
            service_account::validate_ephemeral(&account, object).map_err(forbidden)?;
        }
        if has(Plugin::PodSecurity)
            && let Some(concern) = pod_security::concern(request, object, old)
        {
            self.pod_security(request, concern, object, old)?;
        }
        let is_class = request.is_whole("scheduling.k8s.io", "PriorityClass");
        if has(Plugin::Priority) && is_class && request.operation != Operation::Delete {
            let classes = lookup::all(self, PRIORITY_CLASSES, "")?;
            priority::validate(request.operation, &classes, object).map_err(forbidden)?;
        }
        self.validating_class_plugins(request, object, old)
    }

    /// The plugins that look at what an object's class or signer says.
    fn validating_class_plugins(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let has = |plugin| self.has(plugin);
        let forbidden = |why: PluginRefusal| request.forbidden(object, &why.to_string());
        if has(Plugin::PersistentVolumeClaimResize) && claim_resize::concerns(request, object, old)
        {
            let name = claim_resize::class_name(object);
            let class = lookup::one(self, STORAGE_CLASSES, None, name)?;
            claim_resize::check(class.as_ref(), object, old).map_err(forbidden)?;
        }
        if has(Plugin::RuntimeClass) && runtime_class::concerns(request) {
            let class = self.runtime_class(request, object)?;
            runtime_class::validate(class.as_ref(), object).map_err(forbidden)?;
        }
        if has(Plugin::CertificateApproval) {
            certificates::check_approval(self, request, old).map_err(forbidden)?;
        }
        if has(Plugin::CertificateSigning) {
            certificates::check_signing(self, request, object, old).map_err(forbidden)?;
        }
        if has(Plugin::ClusterTrustBundleAttest) {
            certificates::check_attestation(self, request, object).map_err(forbidden)?;
        }
        if has(Plugin::CertificateSubjectRestriction) {
            certificates::check_subject(request, object).map_err(forbidden)?;
        }
        if has(Plugin::PodResizeValidator) && pod_resize::concerns(request, object, old) {
            let node = lookup::one(self, NODES, None, pod_resize::node_name(object))?;
            pod_resize::check(request, object, node.as_ref())?;
        }
        Ok(())
    }

    fn check_account(&self, request: &AdmissionRequest<'_>, pod: &Value) -> Result<(), ApiError> {
        let forbidden = |why: PluginRefusal| request.forbidden(pod, &why.to_string());
        if service_account::is_mirror(pod) {
            return service_account::validate_mirror(pod).map_err(forbidden);
        }
        let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or("");
        if name.is_empty() {
            let (namespace, pod) = (request.namespace(), object::name(pod));
            let why = format!("no service account specified for pod {namespace}/{pod}");
            return Err(forbidden(why.into()));
        }
        let account = self.account(request, pod, name)?;
        service_account::validate_secrets(&account, pod).map_err(forbidden)
    }

    fn pod_security(
        &self,
        request: &AdmissionRequest<'_>,
        concern: Concern,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if concern == Concern::Namespace {
            return self.namespace_security(request, object, old);
        }
        let namespace = request.namespace();
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
        let template = pod_security::template(&request.served.resource.kind, object);
        let verdict = pod_security::judge(&policy, concern, template);
        request.warnings.extend(verdict.warning);
        match verdict.refusal {
            Some(why) => Err(request.forbidden(object, &why)),
            None => Ok(()),
        }
    }

    fn namespace_security(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let (policy, errors) = Policy::read(&object["metadata"]["labels"]);
        let (before, old_errors) = Policy::read(&old["metadata"]["labels"]);
        let is_update = request.operation == Operation::Update;
        let known = is_update && errors == old_errors;
        if !errors.is_empty() && !known {
            return Err(request.invalid(object, &errors));
        }
        if is_update {
            let name = object::name(object);
            let pods = || lookup::all(self, ("", "v1", "pods"), name).unwrap_or_default();
            let warnings = pod_security::judge_namespace(name, &policy, &before, pods);
            request.warnings.extend(warnings);
        }
        Ok(())
    }

    /// Checks the quotas of the namespace. Within the commit they are checked again, because another write may come
    /// first; here so that a dry run and a request that fails later are refused as well.
    fn quota(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        old: &Value,
    ) -> Result<Option<QuotaCheck>, ApiError> {
        let on = self.has(Plugin::ResourceQuota);
        let Some(namespace) = request.namespace.filter(|_| on) else {
            return Ok(None);
        };
        let ledger = &self.quotas;
        if !ledger.concerns(namespace) {
            return Ok(None);
        }
        let check = QuotaCheck::new(request, namespace, object, self.environment.now_rfc3339());
        if !check.measure().concerns(request, object, old) {
            return Ok(None);
        }
        ledger.count(namespace, &self.registry.now());
        match ledger.check(&check) {
            Err(QuotaError::Exceeded(why)) => Err(request.forbidden(object, &why)),
            // A quota that came this moment; the commit looks again.
            Ok(()) | Err(QuotaError::Uncounted) => Ok(Some(check)),
        }
    }
}
