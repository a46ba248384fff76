//! What was shown and what was not, a line each.

use std::process::ExitCode;

use anyhow::Result;

/// The outcome of all steps.
#[derive(Default)]
pub(crate) struct Report {
    passed: usize,
    failed: Vec<String>,
    part: String,
}

impl Report {
    /// A new part begins.
    pub(crate) fn begin(&mut self, part: &str) {
        part.clone_into(&mut self.part);
        println!("\n{part}");
    }

    /// Prints what came of a step.
    pub(crate) fn step(&mut self, what: &str, outcome: Result<String>) {
        match outcome {
            Ok(detail) => {
                self.passed += 1;
                println!("  pass  {what:<46} {detail}");
            }
            Err(error) => {
                println!("  FAIL  {what:<46} {error:#}");
                self.failed.push(format!("{}: {what}", self.part));
            }
        }
    }

    /// Prints the sum of it all.
    pub(crate) fn end(&self) -> ExitCode {
        println!("\n{} passed, {} failed", self.passed, self.failed.len());
        for failed in &self.failed {
            println!("  {failed}");
        }
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
