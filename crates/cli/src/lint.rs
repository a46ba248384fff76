//! `kubewright lint`: mistakes in the API, before users find them.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_manifests::{Finding, Severity, compatibility, lint};

use crate::folder::{Folder, Place};
use crate::notes::counted;
use crate::program::Source;

/// Where definitions are generated to.
const BASES: &str = "config/crd/bases";

/// Look for mistakes in the API of this project
///
/// Judges the definitions of the compiled program: what a server would refuse, what breaks the conventions of Kubernetes,
/// and, with --against, what breaks those who use the API as it was. Fails when there are errors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright lint\n  \
    kubewright lint --against main          what would break users of the API on that branch\n  \
    kubewright lint --against v1.0 --strict --json")]
pub(crate) struct Lint {
    /// Compare with config/crd/bases of this git revision
    #[arg(long, value_name = "REVISION")]
    against: Option<String>,

    /// Let warnings fail as well
    #[arg(long)]
    strict: bool,

    /// Print findings as lines of JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    place: Place,
}

impl Lint {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = self.place.open()?;
        // Before the build, which takes longer than finding out that there is no such revision.
        let old = match &self.against {
            Some(revision) => Some(at(&folder, revision)?),
            None => None,
        };
        let inventory = self.source.inventory(&folder)?;
        let mut findings = lint::inventory(&inventory);
        if let Some(old) = old {
            findings.extend(compatibility::compare(&old, &inventory.definitions));
        }
        for finding in &findings {
            self.print(finding)?;
        }
        self.judge(&findings)
    }

    fn print(&self, finding: &Finding) -> anyhow::Result<()> {
        if self.json {
            println!("{}", serde_json::to_string(finding)?)
        } else {
            println!(
                "{}: {}: {}\n    {}",
                finding.severity, finding.path, finding.message, finding.advice
            )
        }
        Ok(())
    }

    fn judge(&self, findings: &[Finding]) -> anyhow::Result<()> {
        let limit = if self.strict {
            Severity::Warning
        } else {
            Severity::Error
        };
        let count = findings
            .iter()
            .filter(|finding| finding.severity >= limit)
            .count();
        if count > 0 {
            bail!(
                "{} to be fixed",
                counted(count, "finding has", "findings have")
            );
        }
        if !self.json {
            let all = counted(findings.len(), "finding", "findings");
            println!("{all}, none that has to be fixed.");
        }
        Ok(())
    }
}

/// The definitions of a revision.
fn at(folder: &Folder, revision: &str) -> anyhow::Result<Vec<CustomResourceDefinition>> {
    if revision.starts_with('-') {
        bail!("{revision:?} is not a git revision");
    }
    find(&folder.root, revision)?;
    let listed = git(
        &folder.root,
        &["ls-tree", "--name-only", revision, &format!("{BASES}/")],
    )?;
    let mut definitions = Vec::new();
    for path in listed.lines().filter(|path| path.ends_with(".yaml")) {
        let text = git(&folder.root, &["show", &format!("{revision}:./{path}")])?;
        let definition = serde_saphyr::from_str(&text);
        let definition = definition
            .with_context(|| format!("{path} at {revision} is no CustomResourceDefinition"))?;
        definitions.push(definition);
    }
    if definitions.is_empty() {
        bail!("{revision} has no definitions in {BASES}; was config/ committed there?");
    }
    Ok(definitions)
}

/// Fails if the project is in no git repository, or the repository does not have the revision.
fn find(root: &Path, revision: &str) -> anyhow::Result<()> {
    let tree = format!("{revision}^{{tree}}");
    let output = call(root, &["rev-parse", "--quiet", "--verify", &tree])?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("not a git repository") {
        bail!(
            "{} is not in a git repository, and --against compares with a revision of one; run git init and commit {BASES}, or \
             leave out --against",
            root.display()
        );
    }
    // Git has nothing to add to an unknown revision, and says what else is wrong.
    if stderr.trim().is_empty() {
        bail!(
            "there is no revision {revision} in this git repository; see git branch --all and git tag for those that there are, \
             or get those of the remote with: git fetch --tags"
        );
    }
    bail!("git cannot read revision {revision}: {}", stderr.trim())
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = call(root, arguments)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("git {} failed: {}", arguments.join(" "), stderr.trim());
    }
    String::from_utf8(output.stdout).context("the output of git is not valid UTF-8")
}

fn call(root: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new("git");
    // Its messages are read, so they have to be in English.
    command.current_dir(root).env("LC_ALL", "C").args(arguments);
    let output = command.output();
    output.context("git cannot be run, and --against needs it; install git, or leave out --against")
}
