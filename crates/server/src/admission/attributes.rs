//! What admission is asked about: an operation on an object, by somebody, with options.

use std::sync::Arc;

use kubewright_schema::FieldError;
use serde_json::{Map, Value, json};

use crate::auth::User;
use crate::http::query::{Persist, Query};
use crate::object;
use crate::request::Warnings;
use crate::resource::Served;
use crate::status::ApiError;

/// What happens to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A connection is opened, with options that are nowhere stored.
    Connect,
}

impl Operation {
    /// As rules and reviews name it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// The kind of the options besides the object. Those of a connection are the object.
    fn options_kind(self) -> Option<&'static str> {
        match self {
            Operation::Create => Some("CreateOptions"),
            Operation::Update => Some("UpdateOptions"),
            Operation::Delete => Some("DeleteOptions"),
            Operation::Connect => None,
        }
    }
}

/// Who makes a request, and with which options. The server itself is nobody: its writes are not admitted.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    pub(crate) user: User,
    options: Map<String, Value>,
}

impl Requester {
    /// Somebody who writes with options in the query.
    pub(crate) fn writing(user: User, query: &Query) -> Self {
        let mut options = Map::new();
        let dry: Vec<&str> = query.all("dryRun").filter(|v| !v.is_empty()).collect();
        if !dry.is_empty() {
            options.insert("dryRun".into(), json!(dry));
        }
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(value) = query.get(name) {
                options.insert(name.into(), json!(value));
            }
        }
        Self { user, options }
    }

    /// Somebody who deletes with these options.
    pub(crate) fn deleting(user: User, options: Map<String, Value>) -> Self {
        Self { user, options }
    }

    /// The options as an object of their own, null where there are none.
    pub(crate) fn options(&self, operation: Operation) -> Value {
        let Some(kind) = operation.options_kind() else {
            return Value::Null;
        };
        let mut options = self.options.clone();
        options.insert("kind".into(), json!(kind));
        options.insert("apiVersion".into(), json!("meta.k8s.io/v1"));
        Value::Object(options)
    }
}

/// A group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Kind {
    pub(crate) fn to_value(&self) -> Value {
        json!({ "group": self.group, "version": self.version, "kind": self.kind })
    }
}

/// One request to admission. The objects are not part of it: they change on the way.
#[derive(Clone, Copy)]
pub(crate) struct AdmissionRequest<'a> {
    pub(crate) served: &'a Arc<Served>,
    pub(crate) operation: Operation,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) namespace: Option<&'a str>,
    /// Empty as long as a name is still to be made up.
    pub(crate) name: &'a str,
    pub(crate) requester: &'a Requester,
    pub(crate) persist: Persist,
    pub(crate) warnings: &'a Warnings,
}

impl AdmissionRequest<'_> {
    /// Whether it is about an object of this kind, or a part of one.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.served.is(group, kind)
    }

    /// Whether it is about an object of this kind itself.
    pub(crate) fn is_whole(&self, group: &str, kind: &str) -> bool {
        self.subresource.is_empty() && self.is(group, kind)
    }

    /// The namespace as admission sees it: a namespace is in itself.
    pub(crate) fn namespace(&self) -> &str {
        match self.namespace {
            Some(namespace) => namespace,
            None if self.is("", "Namespace") => self.name,
            None => "",
        }
    }

    /// The kind of the object in question; parts such as `scale` have one of their own.
    pub(crate) fn kind(&self) -> Kind {
        let resource = &self.served.resource;
        let part = resource.subresource(self.subresource);
        match part.filter(|part| !part.kind.is_empty() && part.kind != resource.kind) {
            Some(part) => Kind {
                group: part.group.to_string(),
                version: part.version.to_string(),
                kind: part.kind.to_string(),
            },
            None => Kind {
                group: resource.group.to_string(),
                version: resource.version.to_string(),
                kind: resource.kind.to_string(),
            },
        }
    }

    /// The name that a refusal gives, of which there may be no more than the beginning yet.
    fn shown_name<'n>(&'n self, object: &'n Value) -> &'n str {
        let candidates = [
            self.name,
            object::name(object),
            object::meta_str(object, "generateName"),
        ];
        let given = candidates.into_iter().find(|name| !name.is_empty());
        given.unwrap_or("Unknown")
    }

    /// The refusal of a plugin.
    pub(crate) fn forbidden(&self, object: &Value, why: &str) -> ApiError {
        ApiError::forbidden(self.served.about(), self.shown_name(object), why)
    }

    /// The refusal of an object whose fields are wrong.
    pub(crate) fn invalid(&self, object: &Value, errors: &[FieldError]) -> ApiError {
        ApiError::invalid(self.served.about_kind(), self.shown_name(object), errors)
    }
}
