//! `kubewright doctor`: whether everything that a command may need is there, and what to do if not.

mod data;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use clap::Args;
use data::Treatment;

use crate::folder::{Folder, Place};
use crate::image::find_program;
use crate::notes::counted;
use crate::program::cargo;
use crate::remote::block_on;
use crate::remote::connect::Connection;

/// Look whether everything is there that the other commands need, and say what to do if not
///
/// With --data-dir it looks at what a cluster has stored instead: whether it is damaged, and what of it can be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright doctor\n  \
    kubewright doctor --data-dir ./cluster\n  \
    kubewright doctor --data-dir ./cluster --repair")]
pub(crate) struct Doctor {
    /// Look at the data directory of a cluster that is not running, as given to `up --data-dir`
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Rescue what can be read of a damaged data directory; the files as they were are kept beside it
    #[arg(long, requires = "data_dir")]
    repair: bool,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    place: Place,
}

/// How something stands.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    Good(String),
    /// Something that only some commands need.
    Missing(String),
    Bad(String),
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(directory) = &self.data_dir {
            let treatment = if self.repair {
                Treatment::Repair
            } else {
                Treatment::Report
            };
            return data::check(directory, treatment);
        }
        let mut findings = vec![
            ("rust", rust()),
            ("git", tool("git", "lint --against and delete use it")),
            ("kubectl", tool("kubectl", "nothing needs it; people do")),
            ("images", images()),
            ("cluster", self.cluster()),
        ];
        match self.place.open() {
            Ok(folder) => {
                findings.push(("project", Finding::Good(folder.root.display().to_string())));
                findings.push(("toolkit", toolkit(&folder)));
                findings.push(("sources", sources(&folder)));
            }
            Err(error) => findings.push(("project", Finding::Missing(format!("{error:#}")))),
        }
        let mut bad = 0;
        for (what, finding) in &findings {
            let (mark, text) = match finding {
                Finding::Good(text) => ("ok  ", text),
                Finding::Missing(text) => ("-   ", text),
                Finding::Bad(text) => ("FAIL", text),
            };
            bad += usize::from(matches!(finding, Finding::Bad(_)));
            println!("{mark} {what:<11} {text}");
        }
        match bad {
            0 => Ok(()),
            _ => bail!(
                "{} to be fixed",
                counted(bad, "of these has", "of these have")
            ),
        }
    }

    fn cluster(&self) -> Finding {
        let asked = block_on(async {
            let client = self.connection.client().await?;
            Ok(client.apiserver_version().await?.git_version)
        });
        match asked {
            Ok(version) => Finding::Good(format!("answers, with version {version}")),
            Err(_) => Finding::Missing("none answers; start one with: kubewright up".to_owned()),
        }
    }
}

fn rust() -> Finding {
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    let output = Command::new(cargo()).arg("--version").output();
    let Ok(output) = output else {
        return Finding::Bad("cargo is missing; install Rust from https://rustup.rs".to_owned());
    };
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = text.split(' ').nth(1).unwrap_or_default();
    if numbers(version) >= numbers(wanted) {
        Finding::Good(text)
    } else {
        Finding::Bad(format!("{text} is older than {wanted}; run: rustup update"))
    }
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split('.').take(2);
    parts.map(|part| part.parse().unwrap_or_default()).collect()
}

fn tool(name: &str, use_: &str) -> Finding {
    match find_program(name) {
        Some(path) => Finding::Good(path.display().to_string()),
        None => Finding::Missing(format!("not there; {use_}")),
    }
}

/// Whether `image build` can do its work here.
fn images() -> Finding {
    match crate::image::readiness() {
        Ok(text) => Finding::Good(text),
        Err(error) => Finding::Missing(error.to_string()),
    }
}

/// Whether the checkout that the project depends on is there.
fn toolkit(folder: &Folder) -> Finding {
    let text = std::fs::read_to_string(folder.root.join("Cargo.toml")).unwrap_or_default();
    let Some(line) = text.lines().find(|line| line.starts_with("kubewright = ")) else {
        return Finding::Bad("Cargo.toml does not depend on kubewright".to_owned());
    };
    let path = line
        .split("path = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let Some(path) = path else {
        return Finding::Good(line.to_owned());
    };
    let full: PathBuf = folder.root.join(Path::new(path));
    if full.join("Cargo.toml").is_file() {
        Finding::Good(path.to_owned())
    } else {
        Finding::Bad(format!("{path} is not there; correct it in Cargo.toml"))
    }
}

/// Whether every kind of `PROJECT` has its files.
fn sources(folder: &Folder) -> Finding {
    let mut missing = Vec::new();
    for resource in folder
        .project
        .resources
        .iter()
        .filter(|resource| resource.api.is_some())
    {
        let file = crate::scaffold::site::Site::api(&folder.project, resource).file();
        if !folder.root.join(&file).is_file() {
            missing.push(file.display().to_string());
        }
    }
    if missing.is_empty() {
        let resources = folder.project.resources.iter();
        let kinds: BTreeSet<_> = resources.map(|it| (&it.group, &it.kind)).collect();
        Finding::Good(counted(kinds.len(), "kind", "kinds"))
    } else {
        Finding::Bad(format!(
            "PROJECT names files that are not there: {}",
            missing.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("1.100.0") > numbers("1.89"));
        assert!(numbers("1.89.0-nightly") >= numbers("1.89"));
        assert!(numbers("1.9") < numbers("1.89"));
    }
}
