//! What was shown and what was not, a line each.

use std::process::ExitCode;

use anyhow::Result;

use crate::lanes::{AllowMissing, Missing};

/// The outcome of all steps.
#[derive(Default)]
pub(crate) struct Report {
    passed: usize,
    failed: Vec<String>,
    left_out: Vec<String>,
    part: String,
}

impl Report {
    /// A new part begins.
    pub(crate) fn begin(&mut self, part: &str) {
        part.clone_into(&mut self.part);
        println!("\n{part}");
    }

    /// Prints what came of a step. One whose error is [`Missing`] is left out.
    pub(crate) fn step(&mut self, what: &str, outcome: Result<String>) {
        match outcome {
            Ok(detail) => {
                self.passed += 1;
                println!("  pass  {what:<46} {detail}");
            }
            Err(error) if error.is::<Missing>() => {
                println!("  –     {what:<46} left out: {error:#}");
                self.left_out.push(format!("{what}: {error:#}"));
            }
            Err(error) => {
                println!("  FAIL  {what:<46} {error:#}");
                self.failed.push(format!("{}: {what}", self.part));
            }
        }
    }

    /// Prints the sum of it all.
    pub(crate) fn end(&self, missing: AllowMissing) -> ExitCode {
        println!("\n{} passed, {} failed", self.passed, self.failed.len());
        for failed in &self.failed {
            println!("  {failed}");
        }
        let end = missing.end(&self.left_out);
        if self.failed.is_empty() {
            end
        } else {
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_without_their_tool_have_neither_passed_nor_failed() {
        let mut report = Report::default();
        report.step("one", Ok(String::new()));
        report.step(
            "two",
            Err(Missing("kubectl is not installed".to_owned()).into()),
        );
        assert_eq!((report.passed, report.failed.len()), (1, 0));
        assert_eq!(report.left_out, ["two: kubectl is not installed"]);
        assert_eq!(report.end(AllowMissing::default()), ExitCode::FAILURE);
    }
}
