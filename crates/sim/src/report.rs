//! What a campaign found, as text.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::hint::hint;
use crate::identity::escape;
use crate::oracle::Violation;
use crate::plan::Plan;
use crate::run::Outcome;
use crate::trace::Trace;

/// Lines of a timeline: what fits beside the code.
const TIMELINE: usize = 15;
/// Failures that are shown in full.
const SHOWN: usize = 3;

/// What a campaign found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The name of the campaign.
    pub name: String,
    /// How many plans were run, the reference not counted.
    pub plans: usize,
    /// How many plans there are for each kind of fault.
    pub kinds: BTreeMap<&'static str, usize>,
    /// How many plans never came to their fault.
    pub unreached: usize,
    /// How long it took.
    pub took: Duration,
    /// A hash of the traces of all runs, in order: the same in every process.
    pub hash: u64,
    /// The plans that failed.
    pub failures: Vec<Failure>,
}

/// A plan that failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// The plan that failed.
    pub plan: Plan,
    /// What repeats the run: the value of `KUBEWRIGHT_REPLAY`.
    pub token: String,
    /// The rule that did not hold.
    pub violation: Violation,
    /// What it probably means.
    pub hint: Option<String>,
    /// What happened around the fault.
    pub timeline: Vec<String>,
    /// Everything that happened in the run.
    pub trace: Trace,
}

impl Failure {
    pub(crate) fn of(name: &str, plan: &Plan, reference: &Trace, outcome: Outcome) -> Option<Self> {
        let violation = outcome.violation?;
        Some(Self {
            plan: plan.clone(),
            token: token(name, plan),
            hint: hint(plan, &violation, reference, &outcome.trace),
            timeline: outcome.trace.timeline(TIMELINE),
            violation,
            trace: outcome.trace,
        })
    }
}

impl Report {
    /// Whether no plan failed.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }
}

/// What repeats a plan of a campaign.
pub(crate) fn token(name: &str, plan: &Plan) -> String {
    format!("{}:{plan}", escape(name))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.violation.oracle(), self.violation)?;
        if let Some(hint) = &self.hint {
            writeln!(f, "  hint: {hint}")?;
        }
        writeln!(f, "  plan: {}", self.plan)?;
        let test = std::thread::current();
        let test = test.name().filter(|name| *name != "main").unwrap_or("");
        writeln!(
            f,
            "  replay: KUBEWRIGHT_REPLAY='{}' cargo test {test}",
            self.token
        )?;
        for line in &self.timeline {
            writeln!(f, "  | {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            plans,
            unreached,
            ..
        } = self;
        let (seconds, failed) = (self.took.as_secs_f64(), self.failures.len());
        writeln!(
            f,
            "{name}: {plans} plans in {seconds:.1} s, {failed} failed, {unreached} without an occasion"
        )?;
        let kinds = self.kinds.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        writeln!(f, "  {}", kinds.join(", "))?;
        for failure in self.failures.iter().take(SHOWN) {
            writeln!(f, "\n{failure}")?;
        }
        for failure in self.failures.iter().skip(SHOWN) {
            writeln!(f, "also: {} ({})", failure.plan, failure.violation)?;
        }
        Ok(())
    }
}
