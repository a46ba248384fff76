//! What a request's path asks for. The path is taken apart once, here; routing and authorisation see the same parts.

use std::borrow::Cow;

/// Longest path that is looked at.
const MAX_PATH: usize = 8 * 1024;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/`: the list of paths.
    Index,
    /// `/healthz`, `/livez`, `/readyz` and their checks.
    Health(String),
    /// The server's version, at `/version`.
    Version,
    /// The server's metrics, at `/metrics`.
    Metrics,
    /// The whole API as OpenAPI 2, at `/openapi/v2`.
    OpenApiV2,
    /// The list of OpenAPI 3 documents, at `/openapi/v3`.
    OpenApiV3Index,
    /// `/openapi/v3/apis/apps/v1`, without the prefix.
    OpenApiV3(String),
    /// The versions of the core group, at `/api`.
    CoreVersions,
    /// The list of API groups, at `/apis`.
    Groups,
    /// The versions of one group, such as `/apis/apps`.
    Group(String),
    /// The resources of one version, such as `/api/v1` or `/apis/apps/v1`.
    GroupVersion(GroupVersion),
    /// `/.well-known/openid-configuration`: who signs the tokens of service accounts.
    OpenIdConfiguration,
    /// `/openid/v1/jwks`: with which key.
    OpenIdKeys,
    /// Objects of a resource, or a subresource of one.
    Resource(ResourcePath),
    /// A path that is not served.
    Unknown,
}

/// An API group and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupVersion {
    /// API group, empty for the core group.
    pub(crate) group: String,
    /// API version within the group.
    pub(crate) version: String,
}

impl GroupVersion {
    /// The version of a group; the core group is empty.
    pub(crate) fn new(group: &str, version: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
        }
    }

    /// What the `apiVersion` of an object names.
    pub(crate) fn of_api_version(api_version: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version)
    }
}

/// Objects of a resource: a collection, one object, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// Group and version.
    pub(crate) gv: GroupVersion,
    /// Namespace, when the path names one.
    pub(crate) namespace: Option<String>,
    /// Plural.
    pub(crate) resource: String,
    /// Name of one object.
    pub(crate) name: Option<String>,
    /// Part of the object.
    pub(crate) subresource: Option<String>,
    /// The path has the old `watch/` prefix.
    pub(crate) watch: bool,
}

/// Takes a path apart.
pub(crate) fn parse(path: &str) -> Target {
    let Some(segments) = segments(path) else {
        return Target::Unknown;
    };
    let parts: Vec<&str> = segments.iter().map(|s| s.as_ref()).collect();
    match parts.as_slice() {
        [] => Target::Index,
        ["healthz" | "livez" | "readyz", ..] => Target::Health(parts.join("/")),
        ["version"] => Target::Version,
        ["metrics"] => Target::Metrics,
        [".well-known", "openid-configuration"] => Target::OpenIdConfiguration,
        ["openid", "v1", "jwks"] => Target::OpenIdKeys,
        ["openapi", "v2"] => Target::OpenApiV2,
        ["openapi", "v3"] => Target::OpenApiV3Index,
        ["openapi", "v3", rest @ ..] => Target::OpenApiV3(rest.join("/")),
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Target::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Target {
    let gv = GroupVersion {
        group: group.to_owned(),
        version: version.to_owned(),
    };
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        [] => return Target::GroupVersion(gv),
        // `namespaces/x` is the object; `namespaces/x/status` and `/finalize` are its parts.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
        rest => (None, rest),
    };
    let owned = |s: &&str| (*s).to_owned();
    let (name, subresource) = match rest {
        [_] => (None, None),
        [_, name] => (Some(owned(name)), None),
        [_, name, sub @ ..] => (Some(owned(name)), Some(sub.join("/"))),
        [] => return Target::Unknown,
    };
    Target::Resource(ResourcePath {
        gv,
        namespace,
        resource: rest[0].to_owned(),
        name,
        subresource,
        watch,
    })
}

/// The decoded segments, or nothing when a segment could be taken for another key: empty, `.`, `..`, or with a
/// slash, a NUL or broken escapes in it. One trailing slash is allowed.
fn segments(path: &str) -> Option<Vec<Cow<'_, str>>> {
    if path.len() > MAX_PATH {
        return None;
    }
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(Vec::new());
    }
    path.split('/')
        .map(|raw| {
            let segment = percent_decode(raw, Plus::Literal)?;
            let safe = !segment.is_empty()
                && segment != "."
                && segment != ".."
                && !segment.contains(['/', '\0', '\\']);
            safe.then_some(segment)
        })
        .collect()
}

/// What `+` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    /// Itself, as in a path.
    Literal,
    /// A space, as in a query.
    Space,
}

/// Decodes `%xx`; nothing when an escape is broken or the result is not UTF-8.
pub(crate) fn percent_decode(raw: &str, plus: Plus) -> Option<Cow<'_, str>> {
    if !raw.contains(['%', '+']) {
        return Some(Cow::Borrowed(raw));
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                out.push((high * 16 + low) as u8);
            }
            b'+' if plus == Plus::Space => out.push(b' '),
            other => out.push(other),
        }
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(
        path: &str,
    ) -> (
        String,
        Option<String>,
        String,
        Option<String>,
        Option<String>,
        bool,
    ) {
        match parse(path) {
            Target::Resource(r) => {
                let gv = format!("{}/{}", r.gv.group, r.gv.version);
                (gv, r.namespace, r.resource, r.name, r.subresource, r.watch)
            }
            other => panic!("{path} is {other:?}"),
        }
    }

    fn some(s: &str) -> Option<String> {
        Some(s.to_owned())
    }

    #[test]
    fn paths_name_collections_objects_and_their_parts() {
        let pods = || "pods".to_owned();
        assert_eq!(
            object("/api/v1/pods"),
            ("/v1".into(), None, pods(), None, None, false)
        );
        assert_eq!(
            object("/api/v1/namespaces/a/pods/b/status"),
            (
                "/v1".into(),
                some("a"),
                pods(),
                some("b"),
                some("status"),
                false
            )
        );
        assert_eq!(
            object("/api/v1/watch/namespaces/a/pods"),
            ("/v1".into(), some("a"), pods(), None, None, true)
        );
        assert_eq!(
            object("/api/v1/namespaces/a/finalize"),
            (
                "/v1".into(),
                None,
                "namespaces".into(),
                some("a"),
                some("finalize"),
                false
            )
        );
        assert_eq!(
            object("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x"),
            (
                "rbac.authorization.k8s.io/v1".into(),
                None,
                "clusterroles".into(),
                some("system:x"),
                None,
                false
            )
        );
    }

    #[test]
    fn paths_that_could_name_another_key_name_nothing() {
        for path in [
            "/api/v1//pods",
            "/api/v1/../v1/pods",
            "/api/v1/namespaces/a/pods/%2e%2e",
            "/api/v1/namespaces/a/pods/x%2fy",
            "/api/v1/namespaces/a/pods/x%00",
            "/api/v1/namespaces/a/pods/%zz",
            "/api/v1/namespaces/a/pods/%ff",
            "api/v1/pods",
        ] {
            assert_eq!(parse(path), Target::Unknown, "{path}");
        }
    }
}
