//! What operations are, before any dialect of OpenAPI writes them down.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::parameter::Parameter;

/// Media types of one object.
pub(super) const OBJECT: &[&str] = &[
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
];

/// Media types of lists, which may be watched.
pub(super) const STREAM: &[&str] = &[
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];

/// Media types of logs.
pub(super) const LOG: &[&str] = &[
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
    "text/plain",
];

/// Media types of custom objects, which have no protobuf.
pub(super) const CUSTOM: &[&str] = &["application/json", "application/yaml"];

/// Whatever.
pub(super) const ANY: &[&str] = &["*/*"];

/// Patches of built-in kinds.
pub(super) const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Patches of custom kinds: strategic merge needs merge keys, which they lack.
pub(super) const CUSTOM_PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

/// What can be done at one path with one HTTP method.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    /// HTTP method in lower case.
    pub(super) method: &'static str,
    pub(super) id: String,
    pub(super) description: String,
    pub(super) tag: &'a str,
    /// `x-kubernetes-action` and `x-kubernetes-group-version-kind`; absent on discovery.
    pub(super) acts: Option<(&'static str, GroupVersionKind<'a>)>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body<'a>>,
    pub(super) produces: &'static [&'static str],
    pub(super) answer: Answer<'a>,
    /// Statuses with which it answers.
    pub(super) statuses: &'static [u16],
}

/// What an operation is sent.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub(super) definition: Cow<'a, str>,
    pub(super) required: bool,
    pub(super) consumes: &'static [&'static str],
}

/// What an operation answers.
#[derive(Debug)]
pub(super) enum Answer<'a> {
    /// An object of this definition.
    Definition(Cow<'a, str>),
    /// Plain text, such as a log.
    Text,
}

/// `x-kubernetes-group-version-kind`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct GroupVersionKind<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
}

/// One path: what all its operations share, and the operations by method.
#[derive(Debug, Default)]
pub(super) struct Path<'a> {
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation<'a>>,
}

pub(super) type Paths<'a> = BTreeMap<String, Path<'a>>;

impl Path<'_> {
    /// Moves the parameters that every operation has to the path, as the API server does, and sorts everything.
    pub(super) fn share_parameters(&mut self) {
        let Some((first, others)) = self.operations.split_first() else {
            return;
        };
        let mut shared: Vec<Parameter> = first.parameters.clone();
        shared.retain(|p| others.iter().all(|o| o.parameters.contains(p)));
        for operation in &mut self.operations {
            operation.parameters.retain(|p| !shared.contains(p));
            operation.parameters.sort();
        }
        shared.sort();
        self.parameters = shared;
        self.operations.sort_by_key(|operation| operation.method);
    }
}

/// The text that goes with a status.
pub(super) fn status_text(status: u16) -> &'static str {
    match status {
        201 => "Created",
        202 => "Accepted",
        401 => "Unauthorized",
        _ => "OK",
    }
}
