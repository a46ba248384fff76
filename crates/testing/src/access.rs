//! What a request asks for, in the words of roles: a verb on a resource.

use std::fmt;

use http::{Method, Uri};

/// One use of a permission: a verb on a resource, in a namespace and of a name where there is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Access {
    /// The verb of roles: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with its subresource: `pods`, `pods/status`.
    pub resource: String,
    /// The namespace; empty for the whole cluster.
    pub namespace: String,
    /// The name of the object; empty for a collection.
    pub name: String,
}

impl Access {
    /// What a request asks for. Requests for documents, such as discovery, ask for nothing that roles of operators name.
    pub fn of(method: &Method, uri: &Uri) -> Option<Self> {
        let parts: Vec<&str> = uri.path().split('/').filter(|it| !it.is_empty()).collect();
        let (group, rest) = match *parts.first()? {
            "api" => ("", parts.get(2..)?),
            "apis" => (*parts.get(1)?, parts.get(3..)?),
            _ => return None,
        };
        let place = Place::of(rest)?;
        let query = uri.query().unwrap_or_default();
        let resource = match place.subresource {
            Some(subresource) => format!("{}/{subresource}", place.resource),
            None => place.resource.to_owned(),
        };
        Some(Self {
            verb: verb(method, place.name.is_some(), query),
            group: group.to_owned(),
            resource,
            namespace: place.namespace.unwrap_or_default().to_owned(),
            name: place
                .name
                .or_else(|| selected(query))
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// The same on the same resource, with another verb.
    #[must_use]
    pub fn with_verb(&self, verb: &'static str) -> Self {
        Self {
            verb,
            ..self.clone()
        }
    }

    /// Whether it may change a stored object. Reviews are created and stored nowhere.
    pub fn is_write(&self) -> bool {
        let is_review = matches!(
            self.group.as_str(),
            "authentication.k8s.io" | "authorization.k8s.io"
        );
        !is_review && !matches!(self.verb, "get" | "list" | "watch")
    }

    /// The attribute that grants it to an operator, to be put on one of its items.
    pub fn attribute(&self) -> String {
        format!(
            "#[kubewright::rbac(groups = {:?}, resources = {:?}, verbs = {:?})]",
            self.group, self.resource, self.verb
        )
    }
}

/// `get secrets default/web`, `list deployments.apps`.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, "") => write!(f, " in namespace {namespace}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

/// What a path below a version names.
struct Place<'a> {
    namespace: Option<&'a str>,
    resource: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(rest: &[&'a str]) -> Option<Self> {
        let (namespace, rest) = match *rest {
            // A namespace itself, or a part of one: `finalize`, `status`.
            ["namespaces", name, "finalize" | "status"] | ["namespaces", name] => {
                (Some(name), rest)
            }
            ["namespaces", namespace, ..] => (Some(namespace), &rest[2..]),
            _ => (None, rest),
        };
        Some(Self {
            namespace,
            resource: rest.first()?,
            name: rest.get(1).copied(),
            subresource: rest.get(2).copied(),
        })
    }
}

fn verb(method: &Method, has_name: bool, query: &str) -> &'static str {
    let watches = || {
        query
            .split('&')
            .any(|it| it == "watch=true" || it == "watch=1")
    };
    match method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if has_name => "delete",
        "DELETE" => "deletecollection",
        _ if has_name => "get",
        _ if watches() => "watch",
        _ => "list",
    }
}

/// The name that a field selector reduces a collection to.
fn selected(query: &str) -> Option<&str> {
    let mut parts = query.split('&');
    let selector = parts.find_map(|part| part.strip_prefix("fieldSelector=metadata.name"))?;
    let name = selector
        .strip_prefix("%3D")
        .or_else(|| selector.strip_prefix('='))?;
    (!name.contains(['%', ','])).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(request: &str) -> Option<Access> {
        let (method, uri) = request.split_once(' ').expect("a method and a path");
        let method: Method = method.parse().expect("a method");
        Access::of(&method, &uri.parse().expect("a path"))
    }

    #[test]
    fn requests_become_verbs_on_resources() {
        for (request, expected) in [
            ("GET /api/v1/pods", "list pods"),
            ("GET /api/v1/pods?watch=true", "watch pods"),
            ("GET /api/v1/namespaces/a/pods/x", "get pods a/x"),
            (
                "POST /api/v1/namespaces/a/pods",
                "create pods in namespace a",
            ),
            (
                "PUT /apis/apps/v1/namespaces/a/deployments/x/scale",
                "update deployments/scale.apps a/x",
            ),
            (
                "DELETE /api/v1/namespaces/a/pods",
                "deletecollection pods in namespace a",
            ),
            ("DELETE /api/v1/namespaces/a", "delete namespaces a/a"),
            (
                "PUT /api/v1/namespaces/a/finalize",
                "update namespaces/finalize a/a",
            ),
            (
                "GET /api/v1/namespaces?fieldSelector=metadata.name%3Dx",
                "list namespaces x",
            ),
        ] {
            let access = access(request).map(|access| access.to_string());
            assert_eq!(access.as_deref(), Some(expected), "{request}");
        }
        for document in [
            "GET /api/v1",
            "GET /apis/apps/v1",
            "GET /version",
            "GET /openapi/v3",
        ] {
            assert_eq!(access(document), None, "{document}");
        }
    }

    #[test]
    fn attribute_grants_what_was_asked_for() {
        let access = access("GET /apis/apps/v1/namespaces/a/deployments/x").expect("a resource");
        let attribute =
            r#"#[kubewright::rbac(groups = "apps", resources = "deployments", verbs = "get")]"#;
        assert_eq!(access.attribute(), attribute);
    }

    #[test]
    fn reviews_are_not_writes() {
        let review = access("POST /apis/authorization.k8s.io/v1/subjectaccessreviews");
        assert!(!review.expect("a resource").is_write());
        assert!(
            access("POST /api/v1/namespaces/a/pods")
                .expect("a resource")
                .is_write()
        );
    }
}
