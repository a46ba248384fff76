//! Runs steps one after the other, and says what became of each.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::steps::{Line, Need, Step};

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Passed(Duration),
    Failed(Duration),
    /// Left out, and why.
    LeftOut(String),
    /// Not begun, because a step before it failed.
    NotBegun,
}

/// Whether the change may land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
}

/// What became of all steps, in order.
#[derive(Debug)]
pub(crate) struct Report(Vec<(&'static str, End)>);

impl Report {
    /// Returns whether no step failed.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.0.iter().any(|(_, end)| matches!(end, End::Failed(_))) {
            Verdict::Failed
        } else {
            Verdict::Passed
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |took: &Duration| format!("{:>7.1} s", took.as_secs_f64());
        for (name, end) in &self.0 {
            match end {
                End::Passed(took) => writeln!(f, "{name:<12} {}  passed", seconds(took))?,
                End::Failed(took) => writeln!(f, "{name:<12} {}  FAILED", seconds(took))?,
                End::LeftOut(why) => writeln!(f, "{name:<12}            left out: {why}")?,
                End::NotBegun => writeln!(f, "{name:<12}            not begun")?,
            }
        }
        let verdict = match self.verdict() {
            Verdict::Passed => "everything holds",
            Verdict::Failed => {
                "a step failed; run it again alone with `cargo xtask ci --only STEP`"
            }
        };
        write!(f, "{verdict}")
    }
}

/// Runs steps until one fails. `missing` says why a step has to be left out, and `execute` runs one command.
///
/// # Errors
/// When a program cannot be started.
pub(crate) fn run(
    steps: &[Step],
    missing: impl Fn(&Need) -> Option<String>,
    mut execute: impl FnMut(&Line) -> Result<bool>,
) -> Result<Report> {
    let (mut ends, mut failed) = (Vec::new(), false);
    for step in steps {
        let end = if failed {
            End::NotBegun
        } else if let Some(why) = missing(&step.need) {
            End::LeftOut(why)
        } else {
            println!("\n== {}: {}", step.name, step.shows);
            run_step(step, &mut execute)?
        };
        failed |= matches!(end, End::Failed(_));
        ends.push((step.name, end));
    }
    Ok(Report(ends))
}

// How long people waited is real time.
#[expect(clippy::disallowed_methods)]
fn run_step(step: &Step, execute: &mut impl FnMut(&Line) -> Result<bool>) -> Result<End> {
    let begun = Instant::now();
    for line in &step.lines {
        println!("$ {line}");
        if !execute(line)? {
            return Ok(End::Failed(begun.elapsed()));
        }
    }
    Ok(End::Passed(begun.elapsed()))
}

/// A step as `--list` shows it.
pub(crate) fn listed(step: &Step, missing: Option<String>) -> String {
    let mut text = format!("{}: {}", step.name, step.shows);
    if let Some(why) = missing {
        text.push_str(&format!(" (left out: {why})"));
    }
    for line in &step.lines {
        text.push_str(&format!("\n  $ {line}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;

    fn all() -> Vec<Step> {
        steps::all(&crate::root()).expect("the crates can be read")
    }

    fn nothing_is_missing(_: &Need) -> Option<String> {
        None
    }

    #[test]
    fn steps_after_a_failure_are_not_begun() {
        let mut ran = Vec::new();
        let report = run(&all(), nothing_is_missing, |line| {
            ran.push(line.to_string());
            Ok(!line.to_string().contains("clippy"))
        });
        let report = report.expect("every command could be started");
        assert_eq!(report.verdict(), Verdict::Failed);
        assert!(ran.last().is_some_and(|line| line.contains("clippy")));
        let text = report.to_string();
        assert!(text.contains("FAILED"), "{text}");
        assert_eq!(report.0.last().map(|it| &it.1), Some(&End::NotBegun));
    }

    #[test]
    fn a_step_without_its_tool_is_left_out_by_name() {
        let missing = |need: &Need| match need {
            Need::Nothing => None,
            _ => Some("not installed".to_owned()),
        };
        let mut ran = Vec::new();
        let report = run(&all(), missing, |line| {
            ran.push(line.to_string());
            Ok(true)
        });
        let report = report.expect("every command could be started");
        assert_eq!(report.verdict(), Verdict::Passed);
        assert!(!ran.iter().any(|line| line.contains("deny")));
        let text = report.to_string();
        assert!(text.contains("left out: not installed"), "{text}");
    }

    #[test]
    fn every_command_of_a_step_has_to_succeed() {
        let mut left = 2;
        let report = run(&all(), nothing_is_missing, |line| {
            if line.to_string().contains("--features=") {
                left -= 1;
            }
            Ok(left > 0)
        });
        let report = report.expect("every command could be started");
        assert_eq!(report.verdict(), Verdict::Failed);
        assert_eq!(
            left, 0,
            "the second feature failed, the third was not tried"
        );
    }
}
