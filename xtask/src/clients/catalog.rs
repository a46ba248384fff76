//! The clients, and where their versions are pinned.

use std::fs;

use anyhow::{Context as _, Result};

use crate::kubectl::step::World;
use crate::lanes;

/// A client of another project.
pub(crate) struct Client {
    /// The package, as its registry names it.
    pub(crate) name: &'static str,
    pub(crate) language: Language,
    /// Our program that uses it.
    pub(crate) program: &'static str,
    /// What it needs to be there.
    pub(crate) world: World,
}

/// What a client is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    /// Python in an environment of its own, which is a large one.
    Ansible,
    Node,
    Go,
    Java,
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
    Client::new("ansible", Language::Ansible, "with_ansible.py").in_cluster(),
    Client::new("fabric8", Language::Java, "Fabric8").in_cluster(),
    Client::new("client-java", Language::Java, "Official").in_cluster(),
    Client::new("operator-framework", Language::Java, "WebPageOperator").in_cluster(),
];

impl Client {
    const fn new(name: &'static str, language: Language, program: &'static str) -> Self {
        Self {
            name,
            language,
            program,
            world: World::Server,
        }
    }

    /// A client that needs controllers and nodes.
    const fn in_cluster(mut self) -> Self {
        self.world = World::Cluster;
        self
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
            Self::Ansible => "Ansible",
            Self::Java => "Java",
            Self::Node => "Node",
            Self::Go => "Go",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Python | Self::Ansible => "python",
            Self::Java => "java",
            Self::Node => "node",
            Self::Go => "go",
        }
    }

    /// The file that pins versions.
    pub(crate) fn pins(self) -> &'static str {
        match self {
            Self::Python => "requirements.txt",
            Self::Ansible => "ansible.txt",
            Self::Java => "pom.xml",
            Self::Node => "package.json",
            Self::Go => "go.mod",
        }
    }
}

/// The version in a line that is about a package: `name==1`, `"name": "1"`, `name v1` or `<name>1</name>`.
fn pinned<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line
        .trim()
        .trim_start_matches(['"', '<'])
        .strip_prefix(name)?;
    let rest = rest.split("</").next().unwrap_or(rest);
    let version = rest.trim_start_matches(['"', ':', '=', ' ', '>']);
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
            ("  <fabric8>7.3.1</fabric8>", "fabric8", Some("7.3.1")),
        ] {
            assert_eq!(pinned(line, name), expected, "{line}");
        }
        for client in CLIENTS {
            assert_ne!(client.version().expect("pinned"), "", "{}", client.name);
        }
    }
}
