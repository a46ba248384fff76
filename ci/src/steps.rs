//! The steps, cheap ones first, so that a mistake is reported early.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{cargo, package};

/// The oldest Rust that the crates are built with.
const OLDEST_RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// One thing that must hold, and the commands that show it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The name for `--only` and in the report.
    pub(crate) name: &'static str,
    /// What it shows, in a few words.
    pub(crate) shows: &'static str,
    /// The commands, of which each has to succeed.
    pub(crate) lines: Vec<Line>,
    /// What has to be installed; without it the step is left out.
    pub(crate) need: Need,
}

/// What a step needs beyond Rust and a linker.
#[derive(Debug, Clone)]
pub(crate) enum Need {
    /// Rust alone is enough.
    Nothing,
    /// A subcommand of cargo that somebody installed.
    Subcommand(&'static str),
    /// Another version of Rust, installed by rustup.
    Toolchain(&'static str),
    /// That somebody asks for the step by its name: it takes long, or downloads what the other steps do not need.
    Asked,
}

/// One command line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    program: &'static str,
    arguments: Vec<String>,
    environment: Vec<(&'static str, &'static str)>,
    /// Whether what it writes to its standard output is for programs and not for people.
    quiet: bool,
}

impl Line {
    fn new(program: &'static str, arguments: &str) -> Self {
        Self {
            program,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            environment: Vec::new(),
            quiet: false,
        }
    }

    fn cargo(arguments: &str) -> Self {
        Self::new("cargo", arguments)
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Runs the command and returns whether it succeeded. Its output goes where ours goes.
    pub(crate) fn run(&self, root: &Path) -> Result<bool> {
        let mut command = Command::new(self.program);
        cargo::forget_package(&mut command);
        command.current_dir(root).args(&self.arguments);
        command.envs(self.environment.iter().copied());
        if self.quiet {
            command.stdout(std::process::Stdio::null());
        }
        let status = command.status();
        let status = status.with_context(|| format!("{} cannot be started", self.program))?;
        Ok(status.success())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={value:?} ")?;
        }
        write!(f, "{} {}", self.program, self.arguments.join(" "))
    }
}

/// Every step, in the order in which they run.
///
/// # Errors
/// When the manifests of the crates cannot be read.
pub(crate) fn all(root: &Path) -> Result<Vec<Step>> {
    let packages = package::pack_arguments(&package::published(root)?);
    Ok(vec![
        step(
            "lock",
            "Cargo.lock is current",
            [Line::cargo("tree --locked --workspace --depth 0").quiet()],
        ),
        step(
            "format",
            "sources are formatted",
            [Line::cargo("fmt --all --check")],
        ),
        step(
            "packages",
            "every published crate can be packed",
            [Line::cargo(&packages)],
        ),
        step(
            "licences",
            "dependencies have licences and sources that deny.toml allows",
            [Line::cargo("deny check licenses bans sources")],
        )
        .needs(Need::Subcommand("deny")),
        step(
            "lints",
            "clippy finds nothing",
            [Line::cargo(
                "clippy --workspace --all-targets -- -D warnings",
            )],
        ),
        step(
            "docs",
            "documentation has no warning",
            [Line::cargo("doc --workspace --no-deps").with("RUSTDOCFLAGS", "-D warnings")],
        ),
        step(
            "features",
            "the facade compiles without features, and with that of operators alone",
            ["", "operator"].map(feature),
        ),
        all_features(),
        step(
            "oldest-rust",
            "the oldest supported Rust compiles everything",
            [Line::new(
                "rustup",
                &format!("run {OLDEST_RUST} cargo check --workspace"),
            )],
        )
        .needs(Need::Toolchain(OLDEST_RUST)),
        step(
            "tests",
            "all tests pass, and with them words, links, layers, golden files and fuzz corpora",
            [Line::cargo("test --workspace")],
        ),
    ])
}

/// What needs crates that nothing else in the repository does: exporters of spans. `testing` alone is a second check of the whole
/// cluster.
fn all_features() -> Step {
    let packages = "--package kubewright --package kubewright-runtime";
    let lines = [
        Line::cargo(&format!(
            "clippy {packages} --all-targets --all-features -- -D warnings"
        )),
        Line::cargo(&format!("doc {packages} --no-deps --all-features"))
            .with("RUSTDOCFLAGS", "-D warnings"),
        feature("opentelemetry"),
        feature("testing"),
        Line::cargo("test --package kubewright-runtime --all-features --test telemetry"),
    ];
    step(
        "all-features",
        "optional features alone and together",
        lines,
    )
    .needs(Need::Asked)
}

/// The facade with one of its features. Its dependencies get theirs through it.
fn feature(name: &str) -> Line {
    let line = format!("check --package kubewright --lib --no-default-features --features={name}");
    Line::cargo(&line)
}

fn step(name: &'static str, shows: &'static str, lines: impl Into<Vec<Line>>) -> Step {
    Step {
        name,
        shows,
        lines: lines.into(),
        need: Need::Nothing,
    }
}

impl Step {
    fn needs(mut self, need: Need) -> Self {
        self.need = need;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    fn steps() -> Vec<Step> {
        all(&crate::root()).expect("the crates can be read")
    }

    #[test]
    fn names_of_steps_are_unique() {
        let steps = steps();
        let names: BTreeSet<&str> = steps.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), steps.len());
    }

    #[test]
    fn every_feature_of_the_facade_is_checked_alone() {
        let manifest = crate::root().join("crates/kubewright/Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("the facade has a manifest");
        let features = manifest
            .lines()
            .skip_while(|line| *line != "[features]")
            .skip(1)
            .take_while(|line| !line.starts_with('['));
        let declared = features
            .filter_map(|line| line.split_once(" = "))
            .map(|it| it.0);
        let checked: Vec<String> = steps()
            .iter()
            .filter(|it| it.name.ends_with("features"))
            .flat_map(|it| &it.lines)
            .map(ToString::to_string)
            .collect();
        for feature in declared.filter(|it| *it != "default") {
            let flag = format!("--features={feature}");
            assert!(checked.iter().any(|it| it.ends_with(&flag)), "{feature}");
        }
    }

    #[test]
    fn ci_runs_these_steps_and_nothing_else() {
        let script = fs::read_to_string(crate::root().join(".ci/run")).expect("it is there");
        let cargo = script.lines().filter(|line| line.contains("cargo run"));
        let cargo: Vec<&str> = cargo.collect();
        let [line] = cargo[..] else {
            panic!("one line starts the steps: {cargo:?}")
        };
        assert!(line.contains("--package kubewright-ci"), "{line}");
        let tests = steps().pop().map(|it| it.lines[0].to_string());
        assert_eq!(tests.as_deref(), Some("cargo test --workspace"), "last");
    }
}
