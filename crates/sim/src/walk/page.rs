//! Reports of walks for machines and for people: JSON, and one page of HTML that needs nothing else.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::report::{WalkFailure, WalkReport};
use crate::sheet::{escaped, page, row, write};

impl WalkReport {
    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        let unreachable = self.unreachable.iter();
        let unreachable =
            unreachable.map(|(property, why)| json!({"property": property, "why": why}));
        json!({
            "name": self.name,
            "properties": self.properties,
            "changed": self.changed,
            "steps": self.steps,
            "run": self.run,
            "refused": self.refused,
            "unreachable": unreachable.collect::<Vec<_>>(),
            "unbroken": self.unbroken,
            "withoutEffect": self.without_effect,
            "errorStates": self.error_states,
            "seconds": self.took.as_secs_f64(),
            "failures": self.failures.iter().map(walk_failure_json).collect::<Vec<_>>(),
        })
    }

    /// The report as one page of HTML that needs nothing else.
    pub fn to_html(&self) -> String {
        let notes = self.notes();
        let notes: String = notes
            .iter()
            .map(|note| format!("<li>{}</li>", escaped(note)))
            .collect();
        let failures: String = self.failures.iter().map(walk_failure_html).collect();
        let class = if self.is_clean() { "clean" } else { "" };
        let body = format!("<ul>{notes}</ul>{failures}");
        page(&self.name, class, &self.summary(), &body)
    }

    /// Writes the report as `NAME.json` and `NAME.html` into a directory, which is made if it is missing.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        write(directory, &self.name, &self.to_json(), &self.to_html())
    }
}

fn walk_failure_json(failure: &WalkFailure) -> Value {
    json!({
        "step": failure.step,
        "replay": failure.token,
        "oracle": failure.oracle,
        "violation": failure.what,
        "timeline": failure.timeline,
    })
}

fn walk_failure_html(failure: &WalkFailure) -> String {
    let lines: String = failure.timeline.iter().map(|line| row(line)).collect();
    // What is seen without the operator is not replayed.
    let replay = match failure.token.as_str() {
        "" => String::new(),
        token => format!(
            "<p>Replay: <code>KUBEWRIGHT_REPLAY='{}'</code></p>",
            escaped(token)
        ),
    };
    format!(
        "<h2>{}: {}: {}</h2>{replay}<table>{lines}</table>",
        escaped(failure.oracle),
        escaped(&failure.step),
        escaped(&failure.what),
    )
}
