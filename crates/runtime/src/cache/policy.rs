//! The policy of each kind: which of its objects are cached, and what of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube::core::ApiResource;
use kubewright_cache::{Factory, Scope, Selector, SelectorError, Shape};
use serde_json::Value;

use super::{CacheMisuse, Filter, PolicyError};
use crate::client::TypedObject;

/// A resource without its version: all versions of a kind are cached alike, and share what was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourceId {
    group: String,
    plural: String,
}

impl ResourceId {
    pub(crate) fn of(resource: &ApiResource) -> Self {
        Self {
            group: resource.group.clone(),
            plural: resource.plural.clone(),
        }
    }

    /// The name as in `deployments.apps`.
    pub(crate) fn name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

/// How the cache of a manager is filled: what holds for all kinds, and a [policy](CachePolicy) for each kind that differs.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CacheOptions {
    namespaces: Option<Vec<String>>,
    policies: BTreeMap<ResourceId, CachePolicy>,
}

impl CacheOptions {
    /// Options that cache every kind that is read, whole, in all namespaces.
    pub fn new() -> Self {
        Self::default()
    }

    /// Caches kinds that live in namespaces only in these, with one informer for each. Without any, in all namespaces.
    /// Kinds that live in no namespace are cached whole.
    pub fn namespaces(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the policy of one kind and replaces an earlier policy of that kind.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    /// use kubewright_runtime::{CacheOptions, CachePolicy};
    ///
    /// let options = CacheOptions::new().policy(CachePolicy::of::<Pod>().metadata());
    /// # drop(options);
    /// ```
    pub fn policy(mut self, policy: CachePolicy) -> Self {
        self.policies.insert(policy.resource.clone(), policy);
        self
    }

    /// These options with others on top: policies replace those of the same kind. Namespaces that are not set stay, and those
    /// that are set have to be among those that there are.
    pub(crate) fn refined(mut self, by: Self) -> Result<Self, CacheMisuse> {
        let limit = self.namespaces.take().filter(|names| !names.is_empty());
        self.namespaces = match (limit, by.namespaces) {
            (limit, None) => limit,
            (None, wanted) => wanted,
            (Some(limit), Some(wanted)) if is_within(&wanted, &limit) => Some(wanted),
            (Some(limit), Some(wanted)) => {
                return Err(CacheMisuse::Wider {
                    wanted: wanted.join(", "),
                    limit: limit.join(", "),
                });
            }
        };
        self.policies.extend(by.policies);
        Ok(self)
    }

    /// Returns what holds for a resource. Where no policy is set, the factory decides.
    pub(crate) fn resolve(&self, resource: &ApiResource, factory: &Factory) -> Resolved {
        let id = ResourceId::of(resource);
        let policy = self.policies.get(&id).cloned();
        let policy = policy.unwrap_or_else(|| CachePolicy::new(id.clone()));
        let scope = factory.default_scope();
        let everywhere = || {
            scope
                .only_namespace()
                .map(str::to_owned)
                .into_iter()
                .collect()
        };
        let namespaces = policy.namespaces.or_else(|| self.namespaces.clone());
        let own = |text: Option<&str>| text.map(str::to_owned);
        Resolved {
            name: id.name(),
            namespaces: namespaces.unwrap_or_else(everywhere),
            labels: policy.labels.or_else(|| own(scope.label_selector())),
            fields: policy.fields.or_else(|| own(scope.field_selector())),
            extent: policy.extent,
            reads: policy.reads,
            shape: (policy.shape.0)(factory.default_shape()),
        }
    }
}

/// Whether all of these namespaces are among those. None at all would be every namespace.
fn is_within(wanted: &[String], limit: &[String]) -> bool {
    !wanted.is_empty() && wanted.iter().all(|name| limit.contains(name))
}

/// How one kind is cached. All versions of the kind, and all who read or watch it, have the same policy.
#[derive(Debug, Clone)]
#[must_use]
pub struct CachePolicy {
    resource: ResourceId,
    namespaces: Option<Vec<String>>,
    labels: Option<String>,
    fields: Option<String>,
    extent: Extent,
    reads: Reads,
    shape: ChangeShape,
}

/// How much of each object is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    Metadata,
}

/// Where the client reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Cache,
    Server,
}

/// What a policy does to the shape that the factory gives to objects.
#[derive(Clone)]
struct ChangeShape(Arc<dyn Fn(Shape) -> Shape + Send + Sync>);

impl fmt::Debug for ChangeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeShape")
    }
}

impl CachePolicy {
    /// The policy of a kind that is known as a type.
    pub fn of<K: TypedObject>() -> Self {
        Self::dynamic(&ApiResource::erase::<K>(&()))
    }

    /// The policy of a kind that is known at run time.
    pub fn dynamic(resource: &ApiResource) -> Self {
        Self::new(ResourceId::of(resource))
    }

    fn new(resource: ResourceId) -> Self {
        Self {
            resource,
            namespaces: None,
            labels: None,
            fields: None,
            extent: Extent::Whole,
            reads: Reads::Cache,
            shape: ChangeShape(Arc::new(|shape| shape)),
        }
    }

    /// Caches objects of these namespaces only, whatever holds for other kinds. Without any, of all namespaces, which is what
    /// a dynamic kind needs that lives in none.
    pub fn namespaces(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Caches objects that a label selector chooses: text such as `app=web,tier in (a,b)`, pairs, a [`Selector`], or one of the
    /// API or of `kube`. The others are in no list and lead to no event; a read of one by its key is
    /// [out of scope](crate::ClientError::is_out_of_scope). Text that is none is an error when the kind is first used.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    /// use kubewright_runtime::{CacheOptions, CachePolicy};
    ///
    /// let options = CacheOptions::new().policy(CachePolicy::of::<Secret>().labels("app.kubernetes.io/managed-by=example"));
    /// # drop(options);
    /// ```
    pub fn labels(mut self, selector: impl TryInto<Selector, Error: Into<SelectorError>>) -> Self {
        let selected = Scope::all().labels(selector);
        self.labels = selected.label_selector().map(str::to_owned);
        self
    }

    /// Caches objects that a field selector chooses, `spec.nodeName=n1`. The others are in no list and lead to no event; a read of
    /// one by its key is [out of scope](crate::ClientError::is_out_of_scope).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    /// use kubewright_runtime::{CacheOptions, CachePolicy};
    ///
    /// let options = CacheOptions::new().policy(CachePolicy::of::<Pod>().fields("spec.nodeName=node-1"));
    /// # drop(options);
    /// ```
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Caches the metadata of objects only. They are read with [`Client::metadata`](crate::Client::metadata); watches of the
    /// kind see metadata, and reads of whole objects from the cache fail.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    /// use kubewright_runtime::{CacheOptions, CachePolicy};
    ///
    /// let options = CacheOptions::new().policy(CachePolicy::of::<Pod>().metadata());
    /// # drop(options);
    /// ```
    pub fn metadata(mut self) -> Self {
        self.extent = Extent::Metadata;
        self
    }

    /// Reads objects from the server each time, `DisableFor` of controller-runtime. Watches of the kind still have informers.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    /// use kubewright_runtime::{CacheOptions, CachePolicy};
    ///
    /// let options = CacheOptions::new().policy(CachePolicy::of::<ConfigMap>().uncached());
    /// # drop(options);
    /// ```
    pub fn uncached(mut self) -> Self {
        self.reads = Reads::Server;
        self
    }

    /// Drops a field, `status` or `metadata.annotations`, before anything is decoded.
    ///
    /// Objects of the cache then lack it, so the client refuses to replace (PUT) one of them: that would remove the field on
    /// the server. Patches and server-side apply do no harm.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    /// use kubewright_runtime::{CacheOptions, CachePolicy};
    ///
    /// let options = CacheOptions::new().policy(CachePolicy::of::<ConfigMap>().without("data"));
    /// # drop(options);
    /// ```
    pub fn without(self, field: impl Into<String>) -> Self {
        let field = field.into();
        self.shaped(move |shape| shape.without(&field))
    }

    /// Changes each object as it arrives, as [`Shape::transform`] does. Objects of such a kind cannot be replaced (PUT).
    pub fn transform(
        self,
        edit: impl Fn(&mut Value) -> Result<(), String> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.shaped(move |shape| shape.transform(edit.clone()))
    }

    /// Sets what is kept of each object: its JSON, or its decoded value as well.
    pub fn keep(self, keep: kubewright_cache::Keep) -> Self {
        self.shaped(move |shape| shape.keep(keep))
    }

    fn shaped(mut self, change: impl Fn(Shape) -> Shape + Send + Sync + 'static) -> Self {
        let before = self.shape.0;
        self.shape.0 = Arc::new(move |shape| change(before(shape)));
        self
    }
}

/// The policy of a resource with everything that follows from the options and the factory.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    /// The resource, as in `deployments.apps`.
    pub(crate) name: String,
    /// None means all.
    pub(crate) namespaces: Vec<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) extent: Extent,
    reads: Reads,
    pub(crate) shape: Shape,
}

impl Resolved {
    /// What an informer of one namespace, or of all, asks the server for.
    pub(crate) fn scope(&self, namespace: Option<&str>) -> Scope {
        let mut scope = Scope::all();
        if let Some(namespace) = namespace {
            scope = scope.namespace(namespace);
        }
        if let Some(labels) = &self.labels {
            scope = scope.labels(labels);
        }
        if let Some(fields) = &self.fields {
            scope = scope.fields(fields);
        }
        scope
    }

    /// The selectors as a test of objects.
    pub(crate) fn filter(&self) -> Result<Filter, PolicyError> {
        Filter::new(self.labels.as_deref(), self.fields.as_deref())
    }

    /// The selectors in words, if there are any.
    pub(crate) fn selectors(&self) -> Option<String> {
        let labels = self.labels.iter().map(|text| format!("the labels {text}"));
        let fields = self.fields.iter().map(|text| format!("the fields {text}"));
        let all: Vec<String> = labels.chain(fields).collect();
        (!all.is_empty()).then(|| all.join(" and "))
    }

    pub(crate) fn is_read_live(&self) -> bool {
        self.reads == Reads::Server
    }

    /// The fields that cached objects lack.
    pub(crate) fn dropped(&self) -> Vec<String> {
        let mut dropped = self.shape.dropped();
        if self.extent == Extent::Metadata {
            dropped.push("*".to_owned());
        }
        dropped
    }
}
