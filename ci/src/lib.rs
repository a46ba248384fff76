//! Everything that must hold before a change lands, as a list of steps: what `.ci/run` and `cargo xtask ci` run. Beside it, tasks
//! that need no more than cargo: packages and the book.
//!
//! Steps run one after the other and stop at the first that fails. A step whose tool is not installed is left out, by name. What
//! is a test already (words, links, layers, golden files, the corpora of the fuzzers) has no step of its own: `cargo test` runs it.

pub mod book;
pub mod cargo;
mod features;
pub mod package;
mod runner;
mod steps;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use runner::Verdict;
use steps::{Need, Step};

/// Run everything that must hold before a change lands
///
/// Format, packages, lints, documentation, features, tests; licences and the oldest supported Rust where their tools are
/// installed. Stops at the first step that fails and prints how long each one took. Needs Rust and a C linker, nothing else.
#[derive(Debug, Default, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    cargo xtask ci                              everything, as before a change lands\n  \
    cargo xtask ci --list                       what would run, and what would be left out\n  \
    cargo xtask ci --only format --only lints   two steps of it\n  \
    cargo xtask ci --only all-features          optional features, which need more crates"
)]
pub struct Arguments {
    /// Print the steps with their commands, and run none
    #[arg(long)]
    pub list: bool,
    /// Only this step; can be repeated
    #[arg(long, value_name = "STEP")]
    pub only: Vec<String>,
}

/// Runs the chosen steps and returns how the program should end.
///
/// # Errors
/// When a name in `--only` is not the name of a step, or a program cannot be started.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = root();
    let steps = chosen(steps::all(&root)?, &arguments.only)?;
    let missing = |need: &Need| missing(need, &arguments.only);
    if arguments.list {
        for step in &steps {
            println!("{}", runner::listed(step, missing(&step.need)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = runner::run(&steps, missing, |line| line.run(&root))?;
    println!("\n{report}");
    Ok(match report.verdict() {
        Verdict::Passed => ExitCode::SUCCESS,
        Verdict::Failed => ExitCode::FAILURE,
    })
}

fn chosen(steps: Vec<Step>, only: &[String]) -> Result<Vec<Step>> {
    if let Some(name) = only
        .iter()
        .find(|name| !steps.iter().any(|it| it.name == **name))
    {
        let names: Vec<&str> = steps.iter().map(|it| it.name).collect();
        bail!("{name:?} is not a step; the steps are {}", names.join(", "));
    }
    let wanted = |step: &Step| only.is_empty() || only.iter().any(|name| name == step.name);
    Ok(steps.into_iter().filter(wanted).collect())
}

/// Returns why a step has to be left out on this machine, if it has.
fn missing(need: &Need, only: &[String]) -> Option<String> {
    match need {
        Need::Nothing => None,
        Need::Asked if only.is_empty() => Some("only with --only".to_owned()),
        Need::Asked => None,
        Need::Subcommand(name) => {
            let program = format!("cargo-{name}");
            let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
                .any(|folder| folder.join(&program).is_file());
            (!found).then(|| format!("{program} is not installed"))
        }
        Need::Toolchain(version) => {
            let listed = Command::new("rustup").args(["toolchain", "list"]).output();
            let listed = listed.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
            let found = listed.is_ok_and(|it| it.lines().any(|line| line.starts_with(version)));
            (!found).then(|| format!("Rust {version} is not installed"))
        }
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_can_be_chosen_by_name_and_unknown_names_are_refused() {
        let only = ["tests".to_owned(), "format".to_owned()];
        let all = || steps::all(&root()).expect("the crates can be read");
        let names = chosen(all(), &only).expect("both are steps");
        let names: Vec<&str> = names.iter().map(|it| it.name).collect();
        assert_eq!(names, ["format", "tests"], "in the order of the whole run");
        let error = chosen(all(), &["formatt".to_owned()]).expect_err("it is not a step");
        assert!(error.to_string().contains("the steps are lock, format"));
    }
}
