//! Compares what came back with what had to, and says where they part.

use regex::RegexBuilder;

use crate::process::{End, Output};

use super::step::{Expect, Step};

/// Lines of an output that are shown with a failure.
const SHOWN: usize = 8;

/// What is wrong with the outcome of a step; nothing when it is right.
pub(crate) fn failures(step: &Step, output: &Output) -> Vec<String> {
    let mut failures = Vec::new();
    match output.end {
        End::TooLate => failures.push("it did not end in time".to_owned()),
        End::Exited(code) if code != step.code => {
            failures.push(format!("code {code}, expected {}", step.code));
        }
        End::Exited(_) | End::Stopped => {}
    }
    for (name, text, expects) in [
        ("stdout", &output.stdout, &step.stdout),
        ("stderr", &output.stderr, &step.stderr),
    ] {
        let wrong = expects.iter().filter(|expect| !holds(**expect, text));
        failures.extend(wrong.map(|expect| describe(name, *expect, text)));
    }
    if !failures.is_empty() {
        failures.extend(excerpt("stdout", &output.stdout));
        failures.extend(excerpt("stderr", &output.stderr));
    }
    failures
}

/// Whether everything that standard output has to contain is there, so that waiting for more is of no use.
pub(crate) fn complete(step: &Step, output: &Output) -> bool {
    step.stdout
        .iter()
        .all(|expect| holds(*expect, &output.stdout))
}

fn holds(expect: Expect, text: &str) -> bool {
    match expect {
        Expect::Contains(part) => text.contains(part),
        Expect::Lacks(part) => !text.contains(part),
        Expect::Equals(whole) => text.trim_end() == whole.trim_end(),
        Expect::Once(part) => text.matches(part).count() == 1,
        Expect::Matches(pattern) => RegexBuilder::new(pattern)
            .multi_line(true)
            .build()
            .expect("patterns of the script are well formed")
            .is_match(text),
    }
}

fn describe(name: &str, expect: Expect, text: &str) -> String {
    match expect {
        Expect::Contains(part) => format!("{name} lacks {part:?}"),
        Expect::Lacks(part) => format!("{name} has {part:?}"),
        Expect::Once(part) => {
            let times = text.matches(part).count();
            format!("{name} has {part:?} {times} times, expected once")
        }
        Expect::Matches(pattern) => format!("{name} does not match {pattern}"),
        Expect::Equals(whole) => first_difference(name, whole, text),
    }
}

fn first_difference(name: &str, expected: &str, got: &str) -> String {
    let (expected, got): (Vec<_>, Vec<_>) = (expected.lines().collect(), got.lines().collect());
    let at = expected
        .iter()
        .zip(&got)
        .position(|(a, b)| a != b)
        .unwrap_or_else(|| expected.len().min(got.len()));
    format!(
        "{name} line {}: expected {:?}, got {:?}",
        at + 1,
        expected.get(at).unwrap_or(&"<end>"),
        got.get(at).unwrap_or(&"<end>")
    )
}

fn excerpt(name: &str, text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text
        .lines()
        .take(SHOWN)
        .map(|line| format!("{name} | {line}"))
        .collect();
    if text.lines().count() > SHOWN {
        lines.push(format!("{name} | …"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::step::kubectl;
    use super::*;

    fn check(step: &Step, stdout: &str, code: i32, expected: &str) {
        let output = Output {
            stdout: stdout.to_owned(),
            stderr: String::new(),
            end: End::Exited(code),
        };
        let found = failures(step, &output);
        assert_eq!(found.first().map_or("", String::as_str), expected);
    }

    #[test]
    fn a_step_passes_when_code_and_output_are_right() {
        let step = kubectl("get x").matches("^a +b$").lacks("c");
        check(&step, "first\na   b\n", 0, "");
        check(&step, "a b", 1, "code 1, expected 0");
        check(&step, "a b c", 0, "stdout does not match ^a +b$");
        check(&step, "a b\nc", 0, "stdout has \"c\"");
        let once = kubectl("get x").prints_once("a");
        check(&once, "b a c", 0, "");
        check(&once, "a a", 0, "stdout has \"a\" 2 times, expected once");
    }

    #[test]
    fn the_first_line_that_differs_is_shown() {
        let step = kubectl("get x").prints_exactly("one\ntwo");
        check(&step, "one\ntwo\n", 0, "");
        check(
            &step,
            "one\n2\n",
            0,
            r#"stdout line 2: expected "two", got "2""#,
        );
        check(
            &step,
            "one\n",
            0,
            r#"stdout line 2: expected "two", got "<end>""#,
        );
    }
}
