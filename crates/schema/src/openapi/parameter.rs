//! The parameters of operations, in the path and in the query.

/// A parameter. Parameters are ordered by name, as documents list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: Place,
    /// `string`, `integer` or `boolean`.
    pub(super) ty: &'static str,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Path,
    Query,
}

impl Place {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
        }
    }
}

const fn path(name: &'static str) -> Parameter {
    Parameter {
        name,
        place: Place::Path,
        ty: "string",
    }
}

const fn text(name: &'static str) -> Parameter {
    Parameter {
        name,
        place: Place::Query,
        ty: "string",
    }
}

const fn number(name: &'static str) -> Parameter {
    Parameter {
        ty: "integer",
        ..text(name)
    }
}

const fn flag(name: &'static str) -> Parameter {
    Parameter {
        ty: "boolean",
        ..text(name)
    }
}

pub(super) const NAMESPACE: Parameter = path("namespace");
pub(super) const NAME: Parameter = path("name");
/// The rest of a proxied path.
pub(super) const REST: Parameter = path("path");
pub(super) const PRETTY: Parameter = text("pretty");

pub(super) const LIST: &[Parameter] = &[
    PRETTY,
    flag("allowWatchBookmarks"),
    text("continue"),
    text("fieldSelector"),
    text("labelSelector"),
    number("limit"),
    text("resourceVersion"),
    text("resourceVersionMatch"),
    flag("sendInitialEvents"),
    number("timeoutSeconds"),
    flag("watch"),
];

pub(super) const WRITE: &[Parameter] = &[
    PRETTY,
    text("dryRun"),
    text("fieldManager"),
    text("fieldValidation"),
];

pub(super) const PATCH: &[Parameter] = &[
    PRETTY,
    text("dryRun"),
    text("fieldManager"),
    text("fieldValidation"),
    flag("force"),
];

pub(super) const DELETE: &[Parameter] = &[
    PRETTY,
    text("dryRun"),
    number("gracePeriodSeconds"),
    flag("orphanDependents"),
    text("propagationPolicy"),
];

pub(super) const DELETE_COLLECTION: &[Parameter] = &[
    PRETTY,
    text("continue"),
    text("dryRun"),
    text("fieldSelector"),
    number("gracePeriodSeconds"),
    text("labelSelector"),
    number("limit"),
    flag("orphanDependents"),
    text("propagationPolicy"),
    text("resourceVersion"),
    text("resourceVersionMatch"),
    flag("sendInitialEvents"),
    number("timeoutSeconds"),
];

const LOG: &[Parameter] = &[
    PRETTY,
    text("container"),
    flag("follow"),
    flag("insecureSkipTLSVerifyBackend"),
    number("limitBytes"),
    flag("previous"),
    number("sinceSeconds"),
    text("stream"),
    number("tailLines"),
    flag("timestamps"),
];

const ATTACH: &[Parameter] = &[
    text("container"),
    flag("stderr"),
    flag("stdin"),
    flag("stdout"),
    flag("tty"),
];

const EXEC: &[Parameter] = &[
    text("command"),
    text("container"),
    flag("stderr"),
    flag("stdin"),
    flag("stdout"),
    flag("tty"),
];

/// What a subresource that is read takes: logs have options, the others only `pretty`.
pub(super) fn of_reading(subresource: &str) -> &'static [Parameter] {
    match subresource {
        "log" => LOG,
        _ => &[PRETTY],
    }
}

/// What a subresource that opens a connection takes.
pub(super) fn of_connecting(subresource: &str) -> &'static [Parameter] {
    const PORT_FORWARD: &[Parameter] = &[number("ports")];
    const PROXY: &[Parameter] = &[text("path")];
    match subresource {
        "attach" => ATTACH,
        "exec" => EXEC,
        "portforward" => PORT_FORWARD,
        "proxy" => PROXY,
        _ => &[],
    }
}
