//! `cargo xtask package`: packs every crate that is published, unpacks the packages outside of the repository, and builds a
//! scaffolded project against them alone.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};

/// Pack every published crate, and build a scaffolded project against the packages alone
///
/// Packages are what `cargo publish` would send: files that a crate needs and does not pack, and dependencies without a version, show
/// here and nowhere else. They are unpacked into a directory outside of the repository with a project of testdata/projects,
/// whose dependencies lead to them. Everything is compiled there, and the project's own tests are run. Nothing is downloaded
/// that the repository's own build does not need.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    cargo xtask package                    pack, unpack, compile, test\n  \
    cargo xtask package --check            pack, unpack, check without linking or running\n  \
    cargo xtask package --into /var/tmp/p  keep the unpacked packages and what was built"
)]
pub struct Arguments {
    /// Check that everything compiles, without linking and running the project's tests
    #[arg(long)]
    pub check: bool,
    /// The directory to unpack into, kept afterwards; by default one that is removed
    #[arg(long, value_name = "DIRECTORY")]
    pub into: Option<PathBuf>,
    /// The scaffolded project of testdata/projects to build
    #[arg(long, value_name = "PROJECT", default_value = "single")]
    pub project: String,
}

/// A crate that is published.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Published {
    /// The name of the package.
    pub(crate) name: String,
}

/// Packs, unpacks and compiles.
///
/// # Errors
/// When a command fails or cannot be started, or a file cannot be read or written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = crate::root();
    let crates = published(&root)?;
    pack(&root, &crates)?;
    let temporary =
        std::env::temp_dir().join(format!("kubewright-packages-{}", std::process::id()));
    let into = arguments.into.clone().unwrap_or_else(|| temporary.clone());
    let outcome = build(arguments, &root, &crates, &into);
    if arguments.into.is_none() {
        // What is left in a temporary directory does no harm; how the build went matters more.
        let _ = fs::remove_dir_all(&temporary);
    }
    outcome?;
    println!(
        "{} packages; project {} builds against them alone",
        crates.len(),
        arguments.project
    );
    Ok(ExitCode::SUCCESS)
}

/// The crates whose manifest does not say `publish = false`.
pub(crate) fn published(root: &Path) -> Result<Vec<Published>> {
    let mut found = Vec::new();
    let folder = root.join("crates");
    let entries = fs::read_dir(&folder);
    let entries = entries.with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let manifest = entry?.path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest);
        let text = text.with_context(|| format!("reading {}", manifest.display()))?;
        if let Some(name) = published_name(&text) {
            found.push(Published { name });
        }
    }
    found.sort();
    Ok(found)
}

/// The name in a manifest, unless it is not to be published.
fn published_name(manifest: &str) -> Option<String> {
    let package = manifest.split("[package]").nth(1)?;
    let package = package.split("\n[").next()?;
    if package.lines().any(|line| line == "publish = false") {
        return None;
    }
    let name = package
        .lines()
        .find_map(|line| line.strip_prefix("name = "));
    name.map(|name| name.trim_matches('"').to_owned())
}

/// The arguments of the command that packs these crates without compiling them.
pub(crate) fn pack_arguments(crates: &[Published]) -> String {
    let mut line = "package --no-verify --allow-dirty --offline".to_owned();
    for published in crates {
        let _ = write!(line, " --package {}", published.name);
    }
    line
}

fn pack(root: &Path, crates: &[Published]) -> Result<()> {
    let line = pack_arguments(crates);
    cargo(root, &line.split(' ').collect::<Vec<_>>())
}

fn build(arguments: &Arguments, root: &Path, crates: &[Published], into: &Path) -> Result<()> {
    let packages = target(root).join("package");
    fs::create_dir_all(into).with_context(|| format!("making {}", into.display()))?;
    let version = env!("CARGO_PKG_VERSION");
    for published in crates {
        let package = packages.join(format!("{}-{version}.crate", published.name));
        unpack(&package, into)?;
    }
    let project = root.join("testdata/projects").join(&arguments.project);
    copy(&project, &into.join("project"))?;
    depend_on_packages(&into.join("project/Cargo.toml"), version)?;
    let manifest = workspace(crates, version);
    fs::write(into.join("Cargo.toml"), manifest).context("writing the workspace")?;
    // The same versions of other crates as in the repository, all of which are there already.
    fs::copy(root.join("Cargo.lock"), into.join("Cargo.lock")).context("copying Cargo.lock")?;
    cargo(into, &["check", "--offline", "--workspace"])?;
    let project = arguments.project.as_str();
    if arguments.check {
        let line = ["check", "--offline", "--package", project, "--all-targets"];
        return cargo(into, &line);
    }
    cargo(into, &["test", "--offline", "--package", project])
}

/// A workspace of the project and the packages, in which every dependency on one of ours leads to its package.
fn workspace(crates: &[Published], version: &str) -> String {
    let folders: Vec<String> = crates
        .iter()
        .map(|it| format!("{}-{version}", it.name))
        .collect();
    let mut text = "[workspace]\nresolver = \"3\"\nmembers = [\"project\"".to_owned();
    for folder in &folders {
        let _ = write!(text, ", \"{folder}\"");
    }
    text.push_str("]\n\n[patch.crates-io]\n");
    for (published, folder) in crates.iter().zip(&folders) {
        let _ = writeln!(text, "{} = {{ path = \"{folder}\" }}", published.name);
    }
    text
}

/// Replaces the paths of a golden project by the version, as `kubewright init --sdk version` writes it.
fn depend_on_packages(manifest: &Path, version: &str) -> Result<()> {
    let text = fs::read_to_string(manifest).context("reading the project's manifest")?;
    let path = "path = \"../../../crates/kubewright\"";
    ensure!(text.contains(path), "{} has no {path}", manifest.display());
    let text = text.replace(path, &format!("version = \"{version}\""));
    fs::write(manifest, text).context("writing the project's manifest")
}

/// Unpacks a package; tar is what every system that has a C linker has.
fn unpack(package: &Path, into: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(package).arg("-C").arg(into);
    let status = tar.status().context("tar cannot be started")?;
    ensure!(status.success(), "unpacking {} failed", package.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("reading {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).with_context(|| format!("copying {}", source.display()))?;
        }
    }
    Ok(())
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn cargo(directory: &Path, arguments: &[&str]) -> Result<()> {
    println!("$ cargo {}", arguments.join(" "));
    let mut cargo = Command::new("cargo");
    cargo.current_dir(directory).args(arguments);
    let status = cargo.status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("cargo {} failed in {}", arguments[0], directory.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_published_unless_they_say_otherwise() {
        let check = |manifest: &str, expected: Option<&str>| {
            assert_eq!(published_name(manifest).as_deref(), expected, "{manifest}");
        };
        check("[package]\nname = \"a\"\n\n[features]\n", Some("a"));
        check("[package]\nname = \"a\"\npublish = false\n", None);
        check("[workspace]\n", None);
    }

    #[test]
    fn every_crate_of_ours_says_what_a_registry_asks_for() {
        let root = crate::root();
        for Published { name } in published(&root).expect("the crates can be read") {
            let folder = name.strip_prefix("kubewright-").unwrap_or(&name);
            let manifest = root.join("crates").join(folder).join("Cargo.toml");
            let text = fs::read_to_string(manifest).expect("every crate has a manifest");
            for field in [
                "description",
                "license",
                "repository",
                "readme",
                "keywords",
                "categories",
                "rust-version",
            ] {
                let has = text.lines().any(|line| line.starts_with(field));
                assert!(has, "{name} has no {field}");
            }
        }
    }

    #[test]
    fn no_crate_depends_on_an_example() {
        let root = crate::root();
        for entry in fs::read_dir(root.join("crates")).expect("the crates can be read") {
            let manifest = entry.expect("an entry").path().join("Cargo.toml");
            let text = fs::read_to_string(&manifest).expect("every crate has a manifest");
            let dependencies = text.split("[dev-dependencies]").next().unwrap_or_default();
            assert!(
                !dependencies.contains("examples/"),
                "{}",
                manifest.display()
            );
            assert!(
                !dependencies.contains("kubewright-example"),
                "{}",
                manifest.display()
            );
        }
    }

    #[test]
    fn a_workspace_leads_every_dependency_to_its_package() {
        let crates = [Published {
            name: "kubewright".to_owned(),
        }];
        let text = workspace(&crates, "0.1.0");
        assert!(text.contains("members = [\"project\", \"kubewright-0.1.0\"]"));
        assert!(
            text.ends_with("[patch.crates-io]\nkubewright = { path = \"kubewright-0.1.0\" }\n")
        );
    }
}
