//! The name of an image: where its registry is, what it is called there, and which one is meant.

use std::fmt;
use std::str::FromStr;

/// A name such as `registry.example.com/team/guestbook:1.0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) registry: String,
    pub(super) repository: String,
    /// A tag, or a digest with its `sha256:`.
    pub(super) version: String,
}

/// A text is not the name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not the name of an image, such as registry.example.com/guestbook:1.0: {reason}"
)]
pub(super) struct ReferenceError {
    text: String,
    reason: &'static str,
}

impl FromStr for Reference {
    type Err = ReferenceError;

    /// As docker reads it: without a registry it is Docker Hub's, without a tag `latest`.
    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let wrong = |reason| ReferenceError {
            text: text.to_owned(),
            reason,
        };
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let (registry, rest) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
                (first, rest)
            }
            _ => ("docker.io", name),
        };
        let port = registry.split_once(':').map(|(_, port)| port);
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(wrong("the port of the registry is a number"));
        }
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        let is_part = |part: &str| {
            let known = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
            let inside = |letter: char| known(letter) || "._-".contains(letter);
            part.starts_with(known) && part.ends_with(known) && part.chars().all(inside)
        };
        if !repository.split('/').all(is_part) {
            return Err(wrong(
                "the name has lower case letters, digits and . _ - / alone",
            ));
        }
        let tag = tag.unwrap_or("latest");
        let is_tag = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        if tag.is_empty() || tag.len() > 128 || !tag.chars().all(is_tag) {
            return Err(wrong("the tag has letters, digits and . _ - alone"));
        }
        let repository = match registry {
            "docker.io" if !repository.contains('/') => format!("library/{repository}"),
            _ => repository.to_owned(),
        };
        Ok(Self {
            registry: registry.to_owned(),
            repository,
            version: digest.unwrap_or(tag).to_owned(),
        })
    }
}

impl Reference {
    /// Where the registry is asked. Registries of this machine speak plain HTTP.
    pub(super) fn url(&self) -> String {
        let host = self.registry.split(':').next().unwrap_or_default();
        match host {
            "localhost" | "127.0.0.1" => format!("http://{}", self.registry),
            "docker.io" => "https://registry-1.docker.io".to_owned(),
            _ => format!("https://{}", self.registry),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            registry,
            repository,
            version,
        } = self;
        let mark = if version.contains(':') { '@' } else { ':' };
        write!(f, "{registry}/{repository}{mark}{version}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_docker_reads_them() {
        for (text, whole, url) in [
            (
                "guestbook",
                "docker.io/library/guestbook:latest",
                "https://registry-1.docker.io",
            ),
            (
                "team/book:1",
                "docker.io/team/book:1",
                "https://registry-1.docker.io",
            ),
            ("r.io/a/b:1.0", "r.io/a/b:1.0", "https://r.io"),
            (
                "localhost:5000/a",
                "localhost:5000/a:latest",
                "http://localhost:5000",
            ),
            (
                "127.0.0.1:1/a@sha256:0f",
                "127.0.0.1:1/a@sha256:0f",
                "http://127.0.0.1:1",
            ),
        ] {
            let read: Reference = text.parse().expect("it is one");
            assert_eq!(
                (read.to_string(), read.url()),
                (whole.to_owned(), url.to_owned())
            );
        }
        for wrong in ["", "A", "a:", "r.io/", "a b", "a:x/y", "r.io/../a"] {
            assert!(wrong.parse::<Reference>().is_err(), "{wrong}");
        }
    }
}
