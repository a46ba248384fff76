//! What each verb does to a resource: the operations, before they are put at their paths.

use std::borrow::Cow;

use super::operation::{
    ANY, Answer, Body, CUSTOM, CUSTOM_PATCHES, GroupVersionKind, LOG, OBJECT, Operation, PATCHES,
    STREAM,
};
use super::parameter::{self, NAMESPACE, PRETTY, Parameter};
use super::routes::Route;
use crate::catalog::{Scope, Subresource};

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

/// What an operation does, in the three places that name it.
struct Action {
    method: &'static str,
    /// The beginning of the operation's identifier.
    verb: &'static str,
    /// The value of `x-kubernetes-action`.
    extension: &'static str,
}

impl Action {
    const fn new(method: &'static str, verb: &'static str, extension: &'static str) -> Self {
        Self {
            method,
            verb,
            extension,
        }
    }
}

impl<'a> Route<'a> {
    pub(super) fn list(&self, named: String, list: Cow<'a, str>) -> Operation<'a> {
        Operation {
            description: format!("list or watch objects of kind {}", self.resource.kind),
            produces: if self.custom { CUSTOM } else { STREAM },
            answer: Answer::Definition(list),
            ..self.operation(
                Action::new("get", "list", "list"),
                &named,
                None,
                parameter::LIST,
            )
        }
    }

    pub(super) fn watch(&self, action: &'static str, named: String) -> Operation<'a> {
        Operation {
            description: format!("watch changes to objects of kind {}", self.resource.kind),
            produces: STREAM,
            answer: Answer::Definition(WATCH_EVENT.into()),
            ..self.operation(
                Action::new("get", "watch", action),
                &named,
                None,
                parameter::LIST,
            )
        }
    }

    pub(super) fn read(&self, named: &str, sub: Option<&'a Subresource>) -> Operation<'a> {
        let parameters = sub.map_or(&[PRETTY][..], |s| parameter::of_reading(&s.name));
        let mut operation =
            self.operation(Action::new("get", "read", "get"), named, sub, parameters);
        operation.description = self.about("read", "the specified", sub);
        if sub.is_some_and(|s| &*s.name == "log") {
            operation.produces = LOG;
            operation.answer = Answer::Text;
        }
        operation
    }

    pub(super) fn create(&self, named: &str, sub: Option<&'a Subresource>) -> Operation<'a> {
        Operation {
            description: self.about("create", "a", sub),
            body: self.body(self.speaks(sub)),
            statuses: &[200, 201, 202],
            ..self.operation(
                Action::new("post", "create", "post"),
                named,
                sub,
                parameter::WRITE,
            )
        }
    }

    pub(super) fn replace(&self, named: &str, sub: Option<&'a Subresource>) -> Operation<'a> {
        Operation {
            description: self.about("replace", "the specified", sub),
            body: self.body(self.speaks(sub)),
            statuses: &[200, 201],
            ..self.operation(
                Action::new("put", "replace", "put"),
                named,
                sub,
                parameter::WRITE,
            )
        }
    }

    pub(super) fn patch(&self, named: &str, sub: Option<&'a Subresource>) -> Operation<'a> {
        Operation {
            description: self.about("partially update", "the specified", sub),
            body: Some(Body {
                definition: PATCH.into(),
                required: true,
                consumes: if self.custom { CUSTOM_PATCHES } else { PATCHES },
            }),
            statuses: if self.custom { &[200] } else { &[200, 201] },
            ..self.operation(
                Action::new("patch", "patch", "patch"),
                named,
                sub,
                parameter::PATCH,
            )
        }
    }

    pub(super) fn delete(
        &self,
        named: &str,
        parameters: &[Parameter],
        answer: Cow<'a, str>,
    ) -> Operation<'a> {
        Operation {
            description: self.about("delete", "a", None),
            body: Some(Body {
                definition: DELETE_OPTIONS.into(),
                required: false,
                consumes: ANY,
            }),
            answer: Answer::Definition(answer),
            statuses: &[200, 202],
            ..self.operation(
                Action::new("delete", "delete", "delete"),
                named,
                None,
                parameters,
            )
        }
    }

    pub(super) fn connection(
        &self,
        method: &'static str,
        named: &str,
        sub: &'a Subresource,
    ) -> Operation<'a> {
        let parameters = parameter::of_connecting(&sub.name);
        Operation {
            description: format!(
                "connect {} requests to {} of {}",
                method.to_uppercase(),
                sub.name,
                self.resource.kind
            ),
            produces: ANY,
            answer: Answer::Text,
            ..self.operation(
                Action::new(method, "connect", "connect"),
                named,
                Some(sub),
                parameters,
            )
        }
    }

    /// An operation that answers the object itself; the callers change what differs.
    fn operation(
        &self,
        action: Action,
        named: &str,
        sub: Option<&'a Subresource>,
        parameters: &[Parameter],
    ) -> Operation<'a> {
        let mut parameters = parameters.to_vec();
        if self.resource.scope == Scope::Namespaced {
            parameters.push(NAMESPACE);
        }
        Operation {
            method: action.method,
            id: format!("{}{}{named}", action.verb, self.gv.infix),
            description: String::new(),
            tag: &self.gv.tag,
            acts: self.acts(action.extension, sub),
            parameters,
            body: None,
            produces: if self.custom { CUSTOM } else { OBJECT },
            answer: Answer::Definition(self.speaks(sub)),
            statuses: &[200],
        }
    }

    /// Operations carry the kind they speak. On custom resources it is the resource's own everywhere, even on
    /// `scale`, as on the real server.
    pub(super) fn acts(
        &self,
        action: &'static str,
        sub: Option<&'a Subresource>,
    ) -> Option<(&'static str, GroupVersionKind<'a>)> {
        let kind = match sub {
            Some(sub) if !self.custom => GroupVersionKind {
                group: &sub.group,
                version: &sub.version,
                kind: &sub.kind,
            },
            _ => GroupVersionKind {
                group: self.gv.group,
                version: self.gv.version,
                kind: &self.resource.kind,
            },
        };
        Some((action, kind))
    }

    fn speaks(&self, sub: Option<&Subresource>) -> Cow<'a, str> {
        match sub {
            Some(sub) => self.definition(&sub.group, &sub.version, &sub.kind),
            None => self.own(&self.resource.kind),
        }
    }

    fn body(&self, definition: Cow<'a, str>) -> Option<Body<'a>> {
        Some(Body {
            definition,
            required: true,
            consumes: if self.custom { CUSTOM } else { ANY },
        })
    }

    fn about(&self, verb: &str, article: &str, sub: Option<&Subresource>) -> String {
        let kind = &*self.resource.kind;
        let vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
        let article = if article == "a" && vowel {
            "an"
        } else {
            article
        };
        match sub {
            Some(sub) => format!("{verb} {} of {article} {kind}", sub.name),
            None => format!("{verb} {article} {kind}"),
        }
    }
}
