//! The files that the table is generated from, and where they come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use ring::digest::{Context, SHA256, digest};

/// Package that carries the API definitions, and its version.
const DEFINITIONS: (&str, &str) = ("kubernetes-validate", "1.37.0");
/// Definitions file inside that package.
const DEFINITIONS_FILE: &str =
    "kubernetes_validate/kubernetes-json-schema/v1.37.0-local/_definitions.json";
/// Go modules below `k8s.io` that declare the types, and their version.
const MODULES: [&str; 4] = [
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "kube-aggregator",
];
const MODULES_VERSION: &str = "v0.37.0";

/// Files on disk.
pub(super) struct Sources {
    /// `_definitions.json`.
    pub(super) definitions: PathBuf,
    /// Directory of the Go modules.
    pub(super) modules: PathBuf,
}

impl Sources {
    /// Lines that say what the table was made from.
    pub(super) fn provenance(&self) -> Result<Vec<String>> {
        let definitions = fs::read(&self.definitions)?;
        let mut modules = Context::new(&SHA256);
        for path in go_files(&self.modules)? {
            modules.update(path.as_bytes());
            modules.update(&fs::read(self.modules.join(&path))?);
        }
        Ok(vec![
            format!(
                "definitions: Python package {} {}, {DEFINITIONS_FILE}, sha256 {}",
                DEFINITIONS.0,
                DEFINITIONS.1,
                hex(digest(&SHA256, &definitions).as_ref())
            ),
            format!(
                "structs: Go modules k8s.io/{{{}}} {MODULES_VERSION}, names and contents of the files that \
                 declare types, sha256 {}",
                MODULES.join(","),
                hex(modules.finish().as_ref())
            ),
        ])
    }
}

/// The Go files of the modules under a directory that are written by people, sorted, relative to the directory.
pub(super) fn go_files(directory: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = MODULES
        .iter()
        .map(|module| directory.join(format!("{module}@{MODULES_VERSION}")))
        .collect();
    while let Some(inner) = open.pop() {
        let entries =
            fs::read_dir(&inner).with_context(|| format!("reading {}", inner.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                open.push(path);
            } else if name.ends_with(".go") && !is_derived(&name) {
                found.push(path.strip_prefix(directory)?.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Tests and generated files declare no types of their own.
fn is_derived(name: &str) -> bool {
    name.ends_with("_test.go") || name.starts_with("zz_generated") || name == "generated.pb.go"
}

/// Fetches all packages with the tools that own them, pip and go.
pub(super) fn download(into: &Path) -> Result<Sources> {
    fs::create_dir_all(into)?;
    Ok(Sources {
        definitions: download_definitions(into)?,
        modules: download_modules(into)?,
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

fn download_modules(into: &Path) -> Result<PathBuf> {
    let cache = into.join("go");
    fs::create_dir_all(&cache)?;
    let modules = MODULES.map(|module| format!("k8s.io/{module}@{MODULES_VERSION}"));
    run(Command::new("go")
        .args(["mod", "download", "-modcacherw"])
        .args(modules)
        .env("GOMODCACHE", cache.canonicalize()?)
        .current_dir(into))?;
    Ok(cache.join("k8s.io"))
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
