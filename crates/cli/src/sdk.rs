//! Where a project gets the toolkit from: a registry, a git repository, or a checkout on this machine.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the toolkit comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sdk {
    Version(String),
    Git(String),
    /// The root of a checkout.
    Path(PathBuf),
}

/// The same, as templates want it.
#[derive(Debug, Serialize)]
pub(crate) struct SdkValues {
    facade: String,
    root: Option<String>,
    root_in_image: Option<String>,
}

impl Sdk {
    /// The checkout that this program was built from, if it is still there; else the version of this program.
    pub(crate) fn of_this_program() -> Self {
        match checkout() {
            Some(root) => Self::Path(root),
            None => Self::Version(VERSION.to_owned()),
        }
    }

    /// What people have to know about where it comes from, if it is somewhere that others do not have.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::Path(root) => Some(format!(
                "Cargo.toml takes the toolkit from {}: this builds here at once, and nowhere else, CI included. Before you share \
                 the project, write `kubewright = {{ git = {} }}` there, or a version once one is published (init --sdk git, \
                 --sdk version).",
                root.display(),
                quoted(REPOSITORY)
            )),
            Self::Version(_) | Self::Git(_) => None,
        }
    }

    pub(crate) fn values(&self) -> SdkValues {
        let root = match self {
            Self::Path(root) => Some(root.display().to_string()),
            _ => None,
        };
        SdkValues {
            facade: self.facade(),
            root_in_image: root.clone(),
            root,
        }
    }

    /// What stands behind the name of the crate in `Cargo.toml`.
    fn facade(&self) -> String {
        match self {
            Self::Version(version) => format!("version = {}", quoted(version)),
            Self::Git(url) => format!("git = {}", quoted(url)),
            Self::Path(root) => {
                let path = root.join("crates/kubewright");
                format!("path = {}", quoted(&path.display().to_string()))
            }
        }
    }
}

impl FromStr for Sdk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (how, value) = match text.split_once('=') {
            Some((how, value)) => (how, Some(value).filter(|value| !value.is_empty())),
            None => (text, None),
        };
        match (how, value) {
            ("version", value) => Ok(Self::Version(value.unwrap_or(VERSION).to_owned())),
            ("git", value) => Ok(Self::Git(value.unwrap_or(REPOSITORY).to_owned())),
            ("path", Some(path)) => Ok(Self::Path(path.into())),
            ("path", None) => checkout().map(Self::Path).ok_or_else(|| {
                "this program was not built from a checkout that is still there; \
                 say where one is: path=DIR"
                    .to_owned()
            }),
            _ => Err("use version, git or path, each with =VALUE if need be".to_owned()),
        }
    }
}

/// The checkout that this program was built from.
fn checkout() -> Option<PathBuf> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crate_folder.ancestors().nth(2)?;
    let facade = root.join("crates/kubewright/Cargo.toml");
    facade.is_file().then(|| root.to_path_buf())
}

/// A text in TOML.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_written() {
        for (text, line) in [
            ("version=1.2", "version = \"1.2\""),
            (
                "git=https://example.com/a",
                "git = \"https://example.com/a\"",
            ),
            ("path=../../..", "path = \"../../../crates/kubewright\""),
            ("path=/a \"b\"", "path = \"/a \\\"b\\\"/crates/kubewright\""),
        ] {
            let sdk: Sdk = text.parse().expect("it is one");
            assert_eq!(sdk.values().facade, line);
        }
        assert!("elsewhere".parse::<Sdk>().is_err());
        assert_eq!(
            "path".parse(),
            Ok(Sdk::of_this_program()),
            "tests run in a checkout"
        );
    }
}
