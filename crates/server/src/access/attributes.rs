//! What a request asks to do, in the words of roles: a verb, and a resource or a path.

use std::borrow::Cow;

use kubewright_schema::catalog::Verb;
use kubewright_schema::selector::FieldSelector;

use crate::auth::User;
use crate::http::path::{Plus, ResourcePath, Target, percent_decode};
use crate::http::query::Query;
use crate::request::RequestInfo;
use crate::status::{About, ApiError};

/// What somebody wants to do.
#[derive(Debug, Clone)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: Cow<'a, str>,
    pub(crate) subject: Subject<'a>,
}

/// What it is to be done to.
#[derive(Debug, Clone)]
pub(crate) enum Subject<'a> {
    /// Objects of a resource, or one of them.
    Resource(Resource<'a>),
    /// A path that names no objects.
    Path(Cow<'a, str>),
}

/// Objects. What does not apply is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resource<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: Cow<'a, str>,
}

impl<'a> Attributes<'a> {
    /// What a request asks for.
    pub(crate) fn of_request(info: &'a RequestInfo<'a>) -> Self {
        match &info.target {
            Target::Resource(resource) => Self::of_resource(info, resource),
            _ => Self {
                verb: Cow::Owned(info.method.as_str().to_ascii_lowercase()),
                // Roles are written without escapes.
                subject: Subject::Path(
                    percent_decode(info.path, Plus::Literal).unwrap_or(info.path.into()),
                ),
            },
        }
    }

    fn of_resource(info: &RequestInfo<'_>, path: &'a ResourcePath) -> Self {
        let mut name = Cow::Borrowed(path.name.as_deref().unwrap_or(""));
        if matches!(info.verb, Some(Verb::List | Verb::Watch))
            && name.is_empty()
            && let Some(only) = selected_name(&info.query)
        {
            name = Cow::Owned(only);
        }
        let verb = info.verb.map_or("", Verb::as_str);
        // A namespace is an object in itself: whoever may read namespaces there may read this one.
        let namespace = match (&path.namespace, &path.name) {
            (None, Some(name)) if path.resource == "namespaces" => name,
            (Some(namespace), _) => namespace,
            (None, _) => "",
        };
        let subresource = path.subresource.as_deref().unwrap_or("");
        Self {
            verb: Cow::Borrowed(verb),
            subject: Subject::Resource(Resource {
                group: &path.gv.group,
                version: &path.gv.version,
                plural: &path.resource,
                // What follows a proxy's name is the path behind it.
                subresource: subresource.split('/').next().unwrap_or(""),
                namespace,
                name,
            }),
        }
    }

    /// The namespace that is asked about; empty for the whole cluster and for paths.
    pub(crate) fn namespace(&self) -> &str {
        match &self.subject {
            Subject::Resource(resource) => resource.namespace,
            Subject::Path(_) => "",
        }
    }

    /// Whether it is about one object, or what a field selector reduces to one.
    pub(crate) fn is_about_one(&self) -> bool {
        matches!(&self.subject, Subject::Resource(resource) if !resource.name.is_empty())
    }

    /// The refusal.
    pub(crate) fn forbidden(&self, user: &User, reason: &str) -> ApiError {
        let who = escape(&format!("User {:?} cannot {}", user.name, self.verb));
        let reason = match reason {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        let resource = match &self.subject {
            Subject::Path(path) => {
                return ApiError::forbidden_path(&format!(
                    "{who} path {}{reason}",
                    escape(&format!("{path:?}"))
                ));
            }
            Subject::Resource(resource) => resource,
        };
        let part = match resource.subresource {
            "" => resource.plural.to_owned(),
            subresource => format!("{}/{subresource}", resource.plural),
        };
        let place = match resource.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let what = format!(
            "resource {part:?} in API group {:?} {place}",
            resource.group
        );
        let about = About {
            group: resource.group,
            resource: resource.plural,
        };
        ApiError::forbidden(
            about,
            &resource.name,
            &format!("{who} {}{reason}", escape(&what)),
        )
    }
}

/// The name that a field selector reduces a collection to.
fn selected_name(query: &Query) -> Option<String> {
    let selector = FieldSelector::parse(query.get("fieldSelector")?).ok()?;
    let name = selector.exact("metadata.name")?;
    let safe = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '%']);
    safe.then(|| name.to_owned())
}

/// Refusals repeat what strangers sent, and browsers show them.
fn escape(text: &str) -> String {
    if !text.contains(['&', '<', '>']) {
        return text.to_owned();
    }
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::http::path;

    /// `verb group/plural/subresource namespace name` of a request.
    fn asked(request: &str) -> String {
        let (method, uri) = request.split_once(' ').expect("a method and a path");
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let method: Method = method.parse().expect("a method");
        let (target, query) = (path::parse(path), Query::parse(query).expect("a query"));
        let info = RequestInfo::of(&method, path, target, query);
        let attributes = Attributes::of_request(&info);
        match attributes.subject {
            Subject::Path(path) => format!("{} {path}", attributes.verb),
            Subject::Resource(r) => format!(
                "{} {}/{}/{} {:?} {:?}",
                attributes.verb, r.group, r.plural, r.subresource, r.namespace, r.name
            ),
        }
    }

    #[test]
    fn requests_become_verbs_and_resources() {
        for (request, expected) in [
            ("GET /api/v1/pods", r#"list /pods/ "" """#),
            ("GET /api/v1/pods?watch=true", r#"watch /pods/ "" """#),
            (
                "GET /api/v1/watch/namespaces/a/pods",
                r#"watch /pods/ "a" """#,
            ),
            (
                "GET /api/v1/watch/namespaces/a/pods/x/log",
                r#"watch /pods/log "a" "x""#,
            ),
            (
                "DELETE /api/v1/watch/namespaces/a/pods/x",
                r#"watch /pods/ "a" "x""#,
            ),
            (
                "GET /api/v1/namespaces/a/pods/x?watch=true",
                r#"get /pods/ "a" "x""#,
            ),
            (
                "GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx",
                r#"list /pods/ "a" "x""#,
            ),
            (
                "GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name!%3Dx",
                r#"list /pods/ "a" """#,
            ),
            ("GET /api/v1/namespaces/a/pods/x", r#"get /pods/ "a" "x""#),
            (
                "HEAD /api/v1/namespaces/a/pods/x/log",
                r#"get /pods/log "a" "x""#,
            ),
            ("POST /api/v1/namespaces/a/pods", r#"create /pods/ "a" """#),
            (
                "POST /api/v1/namespaces/a/pods/x/exec",
                r#"create /pods/exec "a" "x""#,
            ),
            (
                "GET /api/v1/namespaces/a/pods/x/proxy/y/z",
                r#"get /pods/proxy "a" "x""#,
            ),
            (
                "PUT /apis/apps/v1/namespaces/a/deployments/x/scale",
                r#"update apps/deployments/scale "a" "x""#,
            ),
            (
                "PATCH /apis/apps/v1/namespaces/a/deployments/x",
                r#"patch apps/deployments/ "a" "x""#,
            ),
            (
                "DELETE /api/v1/namespaces/a/pods",
                r#"deletecollection /pods/ "a" """#,
            ),
            (
                "DELETE /api/v1/namespaces/a/pods/x",
                r#"delete /pods/ "a" "x""#,
            ),
            ("GET /api/v1/namespaces/a", r#"get /namespaces/ "a" "a""#),
            (
                "PUT /api/v1/namespaces/a/finalize",
                r#"update /namespaces/finalize "a" "a""#,
            ),
            ("GET /api/v1", "get /api/v1"),
            ("GET /apis/apps/v1", "get /apis/apps/v1"),
            ("HEAD /healthz/ping", "head /healthz/ping"),
            ("POST /nothing/here", "post /nothing/here"),
            ("GET /m%65trics", "get /metrics"),
        ] {
            assert_eq!(asked(request), expected, "{request}");
        }
    }
}
