//! The files that the table is generated from, and where they come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

/// Package that carries the API definitions, and its version.
const DEFINITIONS: (&str, &str) = ("kubernetes-validate", "1.37.0");
/// Definitions file inside that package.
const DEFINITIONS_FILE: &str =
    "kubernetes_validate/kubernetes-json-schema/v1.37.0-local/_definitions.json";
/// Crate that carries the protobuf tags, and its version.
const PROTOBUF: (&str, &str) = ("k8s-pb", "0.9.0");

/// Files on disk.
pub(super) struct Sources {
    /// `_definitions.json`.
    pub(super) definitions: PathBuf,
    /// `src` directory of the protobuf crate.
    pub(super) protobuf: PathBuf,
}

impl Sources {
    /// Lines that say what the table was made from.
    pub(super) fn provenance(&self) -> Result<Vec<String>> {
        let definitions = fs::read(&self.definitions)?;
        let mut protobuf = Sha256::new();
        for path in rust_files(&self.protobuf)? {
            protobuf.update(
                path.strip_prefix(&self.protobuf)?
                    .to_string_lossy()
                    .as_bytes(),
            );
            protobuf.update(fs::read(&path)?);
        }
        Ok(vec![
            format!(
                "definitions: Python package {} {}, {DEFINITIONS_FILE}, sha256 {}",
                DEFINITIONS.0,
                DEFINITIONS.1,
                hex(&Sha256::digest(&definitions))
            ),
            format!(
                "protobuf: crate {} {}, names and contents of src/**/*.rs, sha256 {}",
                PROTOBUF.0,
                PROTOBUF.1,
                hex(&protobuf.finalize())
            ),
        ])
    }
}

/// All Rust files under a directory, sorted.
pub(super) fn rust_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries =
            fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Fetches both packages with the tools that own them, pip and cargo.
pub(super) fn download(into: &Path) -> Result<Sources> {
    fs::create_dir_all(into)?;
    Ok(Sources {
        definitions: download_definitions(into)?,
        protobuf: download_protobuf(into)?,
    })
}

fn download_definitions(into: &Path) -> Result<PathBuf> {
    let definitions = into.join(DEFINITIONS_FILE);
    if definitions.exists() {
        return Ok(definitions);
    }
    let (name, version) = DEFINITIONS;
    let package = format!("{name}=={version}");
    run(Command::new("pip")
        .args(["download", "--no-deps", "--dest"])
        .arg(into)
        .arg(package))?;
    let wheel = into.join(format!(
        "{}-{version}-py3-none-any.whl",
        name.replace('-', "_")
    ));
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(wheel)
        .arg(into))?;
    Ok(definitions)
}

fn download_protobuf(into: &Path) -> Result<PathBuf> {
    let (name, version) = PROTOBUF;
    let project = into.join("protobuf");
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"protobuf-source\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [dependencies]\n{name} = \"={version}\"\n[workspace]\n"
    );
    fs::write(project.join("Cargo.toml"), manifest)?;
    run(Command::new("cargo")
        .args(["vendor", "--quiet", "vendor"])
        .current_dir(&project))?;
    Ok(project.join("vendor").join(name).join("src"))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
