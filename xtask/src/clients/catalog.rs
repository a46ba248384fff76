//! The clients, and where their versions are pinned.

use std::fs;

use anyhow::{Context as _, Result};

use crate::lanes;

/// A client of another project.
pub(crate) struct Client {
    /// The package, as its registry names it.
    pub(crate) name: &'static str,
    pub(crate) language: Language,
    /// Our program that uses it.
    pub(crate) program: &'static str,
}

/// What a client is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Node,
    Go,
}

/// All of them.
pub(crate) const CLIENTS: &[Client] = &[
    Client::new("kubernetes", Language::Python, "official.py"),
    Client::new("kr8s", Language::Python, "with_kr8s.py"),
    Client::new("lightkube", Language::Python, "with_lightkube.py"),
    Client::new("kopf", Language::Python, "with_kopf.py"),
    Client::new("@kubernetes/client-node", Language::Node, "client.js"),
    Client::new("k8s.io/client-go", Language::Go, "clientgo"),
    Client::new("sigs.k8s.io/controller-runtime", Language::Go, "manager"),
];

impl Client {
    const fn new(name: &'static str, language: Language, program: &'static str) -> Self {
        Self {
            name,
            language,
            program,
        }
    }

    /// The version that is pinned in the repository.
    pub(crate) fn version(&self) -> Result<String> {
        let path = lanes::sources(self.language.folder()).join(self.language.pins());
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let found = text.lines().find_map(|line| pinned(line, self.name));
        Ok(found.unwrap_or("").to_owned())
    }
}

impl Language {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Node => "Node",
            Self::Go => "Go",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Go => "go",
        }
    }

    /// The file that pins versions.
    fn pins(self) -> &'static str {
        match self {
            Self::Python => "requirements.txt",
            Self::Node => "package.json",
            Self::Go => "go.mod",
        }
    }
}

/// The version in a line that is about a package: `name==1`, `"name": "1"` or `name v1`.
fn pinned<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.trim().trim_start_matches('"').strip_prefix(name)?;
    let version = rest.trim_start_matches(['"', ':', '=', ' ']);
    let is_separated = version.len() < rest.len();
    is_separated.then(|| {
        version
            .trim_start_matches(['"', 'v'])
            .trim_end_matches(['"', ','])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_every_kind_of_file() {
        for (line, name, expected) in [
            ("kopf==1.45.2", "kopf", Some("1.45.2")),
            ("    \"@a/b\": \"1.4.0\",", "@a/b", Some("1.4.0")),
            (
                "\tk8s.io/client-go v0.37.0",
                "k8s.io/client-go",
                Some("0.37.0"),
            ),
            ("lightkube-models==1", "lightkube", None),
        ] {
            assert_eq!(pinned(line, name), expected, "{line}");
        }
        for client in CLIENTS {
            assert_ne!(client.version().expect("pinned"), "", "{}", client.name);
        }
    }
}
