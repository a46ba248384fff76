//! Where a project gets the toolkit from: a registry, a git repository, or a checkout on this machine.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
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
    /// Where this program itself came from: a checkout that somebody works in, the repository that it was installed from, or
    /// the registry.
    pub(crate) fn of_this_program() -> Self {
        let program = std::env::current_exe().unwrap_or_default();
        match checkout() {
            Some(_) if is_installed(&program) => Self::Git(REPOSITORY.to_owned()),
            Some(root) => Self::Path(root),
            None => Self::Version(VERSION.to_owned()),
        }
    }

    /// Where a project gets it from, by its `Cargo.toml`, if that says so as it was scaffolded.
    pub(crate) fn of_project(manifest: &str) -> Option<Self> {
        let mut lines = manifest.lines();
        let line = lines.find(|line| line.starts_with("kubewright = {"))?;
        let value = |name: &str| {
            let rest = line.split_once(&format!("{name} = \""))?.1;
            Some(rest.split_once('"')?.0.to_owned())
        };
        if let Some(path) = value("path") {
            let root = path.strip_suffix("/crates/kubewright")?;
            return Some(Self::Path(root.into()));
        }
        let git = value("git").map(Self::Git);
        git.or_else(|| value("version").map(Self::Version))
    }

    /// The same place, and the version of this program where a version is named that is another program's.
    pub(crate) fn newer_than(&self, release: &str) -> Self {
        match self {
            Self::Version(version) if version == release => Self::Version(VERSION.to_owned()),
            other => other.clone(),
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
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (how, value) = match text.split_once('=') {
            Some((how, value)) => (how, Some(value).filter(|value| !value.is_empty())),
            None => (text, None),
        };
        match (how, value) {
            ("version", value) => Ok(Self::Version(value.unwrap_or(VERSION).to_owned())),
            ("git", value) => Ok(Self::Git(value.unwrap_or(REPOSITORY).to_owned())),
            ("path", Some(path)) => Ok(Self::Path(path.into())),
            ("path", None) => checkout().map(Self::Path).context(
                "this program was not built from a checkout that is still there; \
                 say where one is: path=DIR",
            ),
            _ => bail!("use version, git or path, each with =VALUE if need be"),
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

/// Whether cargo installed a program: it keeps an account of those beside the folder that they are in. Such a program outlives
/// the checkout that it was built from, which may have been cargo's own.
fn is_installed(program: &Path) -> bool {
    let around = program.parent().and_then(Path::parent);
    around.is_some_and(|around| around.join(".crates.toml").is_file())
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
    fn installed_programs_are_distinguished_from_those_of_a_checkout() {
        let around = tempfile::tempdir().expect("a temporary directory can be made");
        let program = around.path().join("bin/kubewright");
        assert!(!is_installed(&program));
        std::fs::write(around.path().join(".crates.toml"), "[v1]\n").expect("it can be written");
        assert!(is_installed(&program));
    }

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
        for (line, sdk) in [
            (
                "kubewright = { version = \"1.2\" }",
                Some(Sdk::Version("1.2".into())),
            ),
            (
                "kubewright = { git = \"https://a.b/c\", features = [\"x\"] }",
                Some(Sdk::Git("https://a.b/c".into())),
            ),
            (
                "kubewright = { path = \"../crates/kubewright\" }",
                Some(Sdk::Path("..".into())),
            ),
            ("kubewright = \"1\"", None),
        ] {
            let manifest = format!("[dependencies]\n{line}\n");
            assert_eq!(Sdk::of_project(&manifest), sdk, "{line}");
        }
        let old = Sdk::Version("0.0.1".into());
        assert_eq!(old.newer_than("0.0.1"), Sdk::Version(VERSION.into()));
        assert_eq!(old.newer_than("0.0.2"), old);
        assert_eq!(
            "path".parse::<Sdk>().ok(),
            Some(Sdk::of_this_program()),
            "tests run in a checkout"
        );
    }
}
