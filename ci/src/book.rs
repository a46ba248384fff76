//! `cargo xtask book`: the pages below `docs` as a book, by mdBook, without a warning.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};

/// The version of mdBook that the pages are written for.
const MDBOOK: &str = "^0.5";

/// Build the pages below `docs` as a book
///
/// Takes the mdbook on PATH, or installs one below target/lanes, which takes minutes once. The pages are readable as they are, and their
/// Rust blocks are compiled by `cargo test`; this shows that mdBook has nothing to complain about.
#[derive(Debug, Default, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The directory to write the book to; by default target/book
    #[arg(long, value_name = "DIRECTORY")]
    pub into: Option<PathBuf>,
}

/// Builds the book and fails on a warning.
///
/// # Errors
/// When mdBook cannot be installed or started.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = crate::root();
    let program = mdbook(&root)?;
    let into = arguments.into.clone();
    let into = into.unwrap_or_else(|| root.join("target/book"));
    let mut build = Command::new(program);
    build.arg("build").arg(root.join("docs"));
    build.arg("--dest-dir").arg(&into);
    let output = build.output().context("mdbook cannot be started")?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    print!("{text}");
    let complaints = complaints(&text);
    for complaint in &complaints {
        println!("to fix: {complaint}");
    }
    if output.status.success() && complaints.is_empty() {
        println!("{}", into.join("index.html").display());
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Lines of mdBook's log that are more than information.
fn complaints(log: &str) -> Vec<&str> {
    let levels = ["WARN", "ERROR"];
    let lines = log.lines();
    lines
        .filter(|line| levels.iter().any(|level| line.contains(level)))
        .collect()
}

/// The mdbook on PATH, or one that is installed for this.
fn mdbook(root: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("mdbook"))
        .find(|program| program.is_file());
    if let Some(program) = found {
        return Ok(program);
    }
    let own = root.join("target/lanes/mdbook");
    let program = own.join("bin/mdbook");
    if program.is_file() {
        return Ok(program);
    }
    println!(
        "mdbook is not on PATH; it is installed into {}",
        own.display()
    );
    let mut install = Command::new("cargo");
    // Unoptimised: it runs for a second, and compiles for minutes.
    install.args([
        "install",
        "--debug",
        "--locked",
        "mdbook",
        "--version",
        MDBOOK,
    ]);
    install.arg("--root").arg(&own);
    install.arg("--target-dir").arg(own.join("target"));
    let status = install.status().context("cargo cannot be started")?;
    ensure!(status.success(), "mdbook could not be installed");
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_errors_of_mdbook_are_complaints() {
        let log = " INFO Book building has started\n WARN unclosed HTML tag\nERROR no SUMMARY.md\n";
        assert_eq!(complaints(log).len(), 2);
        assert!(complaints(" INFO Running the html backend\n").is_empty());
    }
}
