//! A question about a request, and its answer, without the envelope that they travel in.

use std::collections::BTreeMap;
use std::future::Future;

use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::patch;
use crate::state::States;
use crate::validating::Denial;

/// What somebody wants to do with an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Request {
    /// Names this question; the answer has it too.
    pub uid: String,
    /// The kind of the object, as this webhook sees it.
    pub kind: Subject,
    /// The resource that is asked about, as this webhook sees it.
    #[serde(default)]
    pub resource: GroupVersionResource,
    /// `status` and its like; empty for the object itself.
    #[serde(default)]
    pub sub_resource: String,
    /// The kind that the user sent. It differs from `kind` where the server converted the object to a version that this webhook
    /// is registered for.
    #[serde(default)]
    pub request_kind: Option<Subject>,
    /// The resource that the user named, which can differ from `resource` in the same way.
    #[serde(default)]
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource that the user named; empty for the object itself.
    #[serde(default)]
    pub request_sub_resource: String,
    /// The name of the object; empty when the server is to make one.
    #[serde(default)]
    pub name: String,
    /// Its namespace; empty for objects that live in none.
    #[serde(default)]
    pub namespace: String,
    /// What is to be done with it.
    pub operation: Operation,
    /// The user who asks for it.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it is to be. Nothing when it is deleted.
    #[serde(default)]
    pub object: Value,
    /// The object as it is. Nothing when it is created.
    #[serde(default)]
    pub old_object: Value,
    /// Nothing is going to be stored: do nothing outside of the answer.
    #[serde(default)]
    pub dry_run: bool,
    /// The options of the request, `DeleteOptions` say.
    #[serde(default)]
    pub options: Value,
    /// What the program gave to its webhooks.
    #[serde(skip)]
    pub(crate) states: States,
}

/// The kind of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Subject {
    /// Its group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version of the kind.
    pub version: String,
    /// The name of the kind.
    pub kind: String,
}

/// A resource: what stands in the path of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GroupVersionResource {
    /// Its group; empty for the core group.
    pub group: String,
    /// The version of the resource.
    pub version: String,
    /// Its plural name, such as `deployments`.
    pub resource: String,
}

/// What is done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Operation {
    /// The object is being created.
    Create,
    /// The object is being changed.
    Update,
    /// The object is being deleted.
    Delete,
    /// Somebody connects to it: exec, attach, proxy.
    Connect,
}

impl Request {
    /// The object as it is to be, of a type.
    ///
    /// # Errors
    /// When it does not decode.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, Denial> {
        decode(&self.object, "object")
    }

    /// The object as it is, of a type.
    ///
    /// # Errors
    /// When it does not decode.
    pub fn decode_old<K: DeserializeOwned>(&self) -> Result<K, Denial> {
        decode(&self.old_object, "old object")
    }

    /// Returns what the program gave to its webhooks, by its type: a client of another system, say. It is what reconcilers get with
    /// `Context::state`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kubewright_webhook::{Denial, Request};
    ///
    /// /// Given to the manager with `manager.state(Registries(..))`.
    /// struct Registries(Vec<String>);
    ///
    /// fn from_known_registries(pod: &Pod, request: &Request) -> Result<(), Denial> {
    ///     let known = request.state::<Registries>()?;
    ///     let images = pod.spec.iter().flat_map(|spec| &spec.containers).filter_map(|it| it.image.as_deref());
    ///     for image in images {
    ///         if !known.0.iter().any(|registry| image.starts_with(registry)) {
    ///             return Err(Denial::new(format!("{image} is of a registry that is not known")));
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # let _ = from_known_registries;
    /// ```
    ///
    /// # Errors
    /// When the program gave no value of this type: an internal error, which denies the request.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, Denial> {
        let missing = |error: crate::MissingState| Denial::internal(error.to_string());
        self.states.get().map_err(missing)
    }
}

fn decode<K: DeserializeOwned>(object: &Value, what: &str) -> Result<K, Denial> {
    K::deserialize(object)
        .map_err(|error| Denial::bad_request(format!("the {what} does not decode: {error}")))
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Response {
    denial: Option<Denial>,
    /// Changes, each an operation of RFC 6902.
    patch: Vec<Value>,
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
}

impl Response {
    /// It may go on.
    ///
    /// ```
    /// use kubewright_webhook::{Request, Response, Webhooks};
    ///
    /// let webhooks = Webhooks::new().admission("/log", async |_: Request| Response::allowed());
    /// assert_eq!(webhooks.paths().collect::<Vec<_>>(), ["/log"]);
    /// ```
    pub fn allowed() -> Self {
        Self {
            denial: None,
            patch: Vec::new(),
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
        }
    }

    /// It may not, for a reason that whoever sent it is shown.
    ///
    /// ```
    /// # use kubewright_webhook::{Denial, Response};
    /// let response = Response::denied(Denial::new("the cluster is frozen"));
    /// assert_ne!(response, Response::allowed());
    /// ```
    pub fn denied(denial: impl Into<Denial>) -> Self {
        Self {
            denial: Some(denial.into()),
            ..Self::allowed()
        }
    }

    /// It may go on with another object in place of the one that was asked about.
    ///
    /// ```
    /// # use kubewright_webhook::Response;
    /// use serde_json::json;
    ///
    /// let (from, to) = (json!({"spec": {}}), json!({"spec": {"size": 1}}));
    /// assert_ne!(Response::changed(&from, &to), Response::allowed());
    /// assert_eq!(Response::changed(&from, &from), Response::allowed());
    /// ```
    pub fn changed(from: &Value, to: &Value) -> Self {
        Self {
            patch: patch::between(from, to),
            ..Self::allowed()
        }
    }

    /// Tells whoever sent it something that does not stop it. Kept short: servers cut warnings off.
    ///
    /// ```
    /// # use kubewright_webhook::Response;
    /// let response = Response::allowed().warn("spec.size is deprecated; use spec.replicas");
    /// # drop(response);
    /// ```
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an annotation to the event that the server writes into its audit log about the request. The server puts the name of
    /// the webhook before the key. The last value of a key counts.
    ///
    /// ```
    /// # use kubewright_webhook::Response;
    /// let response = Response::allowed().audit_annotation("policy", "frozen-on-fridays");
    /// assert_ne!(response, Response::allowed());
    /// ```
    pub fn audit_annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }

    pub(crate) fn to_json(&self, uid: &str) -> Value {
        use base64::Engine as _;
        let mut response = json!({ "uid": uid, "allowed": self.denial.is_none() });
        if let Some(denial) = &self.denial {
            response["status"] = denial.to_status();
        } else if !self.patch.is_empty() {
            let patch = Value::from(self.patch.clone()).to_string();
            response["patchType"] = "JSONPatch".into();
            response["patch"] = base64::engine::general_purpose::STANDARD
                .encode(patch)
                .into();
        }
        if !self.warnings.is_empty() {
            response["warnings"] = self.warnings.clone().into();
        }
        if !self.audit_annotations.is_empty() {
            response["auditAnnotations"] = json!(self.audit_annotations);
        }
        response
    }
}

/// Answers questions about requests in its own way. Functions from [`Request`] to a future of [`Response`] are that.
pub trait Admission: Send + Sync + 'static {
    /// What becomes of the request.
    fn admit(&self, request: Request) -> impl Future<Output = Response> + Send;
}

impl<F, R> Admission for F
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = Response> + Send,
{
    fn admit(&self, request: Request) -> impl Future<Output = Response> + Send {
        self(request)
    }
}
