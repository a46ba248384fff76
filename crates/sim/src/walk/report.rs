//! What a walk found, as text.

use std::fmt;
use std::time::Duration;

/// Names that are listed at most.
const LISTED: usize = 20;

/// What a property walk found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WalkReport {
    /// The name of the walk.
    pub name: String,
    /// How many properties the schema has that can be changed.
    pub properties: usize,
    /// How many of them were changed.
    pub changed: usize,
    /// How many changes there are on the way.
    pub steps: usize,
    /// How many of them were made with the operator at work.
    pub run: usize,
    /// Properties that were not changed, each with the reason.
    pub unreachable: Vec<(String, String)>,
    /// How many forbidden values the server refused, before the operator saw any of them.
    pub refused: usize,
    /// Expressions of the schema for which no value was found that breaks them.
    pub unbroken: Vec<String>,
    /// Properties whose changes had no effect on anything.
    pub without_effect: Vec<String>,
    /// Changes that the operator could not carry out, and from which it recovered when they were taken back.
    pub error_states: Vec<String>,
    /// What did not hold.
    pub failures: Vec<WalkFailure>,
    /// How long it took.
    pub took: Duration,
}

/// A step of a walk in which a rule did not hold.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WalkFailure {
    /// The change, as in `set spec.replicas: 3`.
    pub step: String,
    /// The rule that did not hold.
    pub oracle: &'static str,
    /// What was seen instead of what should be.
    pub what: String,
    /// What repeats the step: the value of `KUBEWRIGHT_REPLAY`. Empty for what is seen without the operator.
    pub token: String,
    /// What happened in the step.
    pub timeline: Vec<String>,
}

impl WalkReport {
    /// Whether every property was changed and everything held.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.changed == self.properties
    }

    /// The whole walk in one line.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} of {} properties changed in {} steps, {} run, {} forbidden values refused, {} failed; {:.1} s",
            self.changed,
            self.properties,
            self.steps,
            self.run,
            self.refused,
            self.failures.len(),
            self.took.as_secs_f64()
        )
    }

    /// What there is to know besides failures, a line for each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let unreachable = self.unreachable.iter();
        let unreachable: Vec<String> = unreachable
            .map(|(property, why)| format!("{property} ({why})"))
            .collect();
        let unbroken = "expressions that nothing was found to break";
        let notes = [
            listed("not changed", &unreachable),
            listed("without effect", &self.without_effect),
            listed("not possible, and recovered from", &self.error_states),
            listed(unbroken, &self.unbroken),
        ];
        notes.into_iter().flatten().collect()
    }
}

impl fmt::Display for WalkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}: {}", self.oracle, self.step, self.what)?;
        if !self.token.is_empty() {
            let test = std::thread::current();
            let test = test.name().filter(|name| *name != "main").unwrap_or("");
            writeln!(
                f,
                "  replay: KUBEWRIGHT_REPLAY='{}' cargo test {test}",
                self.token
            )?;
        }
        for line in &self.timeline {
            writeln!(f, "  | {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for WalkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.summary())?;
        for note in self.notes() {
            writeln!(f, "  {note}")?;
        }
        for failure in &self.failures {
            write!(f, "\n{failure}")?;
        }
        Ok(())
    }
}

fn listed(what: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let shown = names[..names.len().min(LISTED)].join(", ");
    let more = if names.len() > LISTED {
        format!(" and {} more", names.len() - LISTED)
    } else {
        String::new()
    };
    Some(format!("{what}: {shown}{more}"))
}
