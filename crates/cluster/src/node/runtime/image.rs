//! Images: which ones a rule is about, and why one cannot be had.

use std::collections::BTreeMap;

/// Names images with `*` for any text: `postgres:*`, `registry.example.com/*`. A pattern without a tag means every tag,
/// and one without a registry also means `docker.io/library`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePattern(String);

impl ImagePattern {
    /// Makes a pattern from its text; every text is one.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether an image is meant.
    pub fn matches(&self, image: &str) -> bool {
        let short = image.strip_prefix("docker.io/").unwrap_or(image);
        let short = short.strip_prefix("library/").unwrap_or(short);
        [image, short].into_iter().any(|image| {
            glob(&self.0, image) || (is_untagged(&self.0) && glob(&self.0, repository(image)))
        })
    }
}

impl From<&str> for ImagePattern {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

fn is_untagged(pattern: &str) -> bool {
    let last = pattern.rsplit('/').next().unwrap_or(pattern);
    !last.contains([':', '@', '*'])
}

/// An image without its tag and digest.
pub(crate) fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        // A colon before a slash belongs to the port of a registry.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

/// The registry that an image comes from: what is before its first slash if that can be a host.
pub(crate) fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => "docker.io",
    }
}

/// Whether a text fits a pattern with `*` for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// An image that a node needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImagePull {
    /// The image as the pod names it.
    pub image: String,
    /// `Always`, `IfNotPresent` or `Never`.
    pub policy: String,
    /// What the pull secrets of the pod have for registries.
    pub credentials: PullCredentials,
}

/// User names by registry, from the pull secrets of a pod. Passwords are not kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PullCredentials(pub BTreeMap<String, String>);

impl PullCredentials {
    /// Whether there is anything for the registry of an image.
    pub fn cover(&self, image: &str) -> bool {
        let wanted = registry(image);
        self.0.keys().any(|host| {
            let host = host.trim_start_matches("https://");
            let host = host.split('/').next().unwrap_or(host);
            host == wanted || (wanted == "docker.io" && host == "index.docker.io")
        })
    }
}

/// Why an image cannot be had, in the words of a container runtime.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PullError(pub String);

impl PullError {
    /// The registry has no such image.
    pub fn missing(image: &str) -> Self {
        Self(format!(
            "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to resolve reference \
             {image:?}: {image}: not found"
        ))
    }

    /// The registry wants to know who is asking.
    pub fn unauthorized(image: &str) -> Self {
        Self(format!(
            "failed to pull and unpack image {image:?}: failed to resolve reference {image:?}: pull access denied, \
             repository does not exist or may require authorization: authorization failed: no basic auth credentials"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_images_with_and_without_tags_and_registries() {
        for (pattern, image, expect) in [
            ("postgres:*", "postgres:16", true),
            ("postgres:*", "docker.io/library/postgres:16", true),
            ("postgres", "postgres:16", true),
            ("postgres", "postgres@sha256:ab", true),
            ("postgres", "postgres-exporter:1", false),
            ("postgres:16", "postgres:15", false),
            (
                "registry.example.com:5000/*",
                "registry.example.com:5000/a/b:1",
                true,
            ),
            ("*", "anything", true),
            ("*/app:v*", "example.com/team/app:v3", true),
            ("*/app:v*", "example.com/team/other:v3", false),
            ("", "a", false),
        ] {
            let matches = ImagePattern::new(pattern).matches(image);
            assert_eq!(matches, expect, "{pattern} {image}");
        }
        assert_eq!(registry("example.com/a"), "example.com");
        assert_eq!(registry("team/a"), "docker.io");
        assert_eq!(repository("localhost:5000/a"), "localhost:5000/a");
    }
}
