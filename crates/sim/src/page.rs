//! Reports for machines and for people: JSON, and one page of HTML that needs nothing else.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::report::{Failure, Report};
use crate::sheet::{escaped, page, row, write};

impl Report {
    /// The report as JSON, without whole traces.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "plans": self.plans,
            "kinds": self.kinds,
            "unreached": self.unreached,
            "seconds": self.took.as_secs_f64(),
            "hash": format!("{:016x}", self.hash),
            "failures": self.failures.iter().map(failure_json).collect::<Vec<_>>(),
        })
    }

    /// The report as one page of HTML that needs nothing else.
    pub fn to_html(&self) -> String {
        let summary = format!(
            "{} plans in {:.1} s, {} failed, {} without an occasion",
            self.plans,
            self.took.as_secs_f64(),
            self.failures.len(),
            self.unreached
        );
        let class = if self.is_clean() { "clean" } else { "" };
        let failures: String = self.failures.iter().map(failure_html).collect();
        let kinds = self.kinds.iter();
        let kinds: String = kinds
            .map(|(kind, count)| format!("<li>{kind}: {count}</li>"))
            .collect();
        page(
            &self.name,
            class,
            &summary,
            &format!("<ul>{kinds}</ul>{failures}"),
        )
    }

    /// Writes the report as `NAME.json` and `NAME.html` into a directory, which is made if it is missing.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        write(directory, &self.name, &self.to_json(), &self.to_html())
    }
}

fn failure_json(failure: &Failure) -> Value {
    json!({
        "plan": failure.plan.to_string(),
        "replay": failure.token,
        "oracle": failure.violation.oracle(),
        "violation": failure.violation.to_string(),
        "hint": failure.hint,
        "timeline": failure.timeline,
    })
}

fn failure_html(failure: &Failure) -> String {
    let lines: String = failure.timeline.iter().map(|line| row(line)).collect();
    let hint = failure.hint.as_deref().map(escaped);
    let hint = hint.map(|hint| format!("<p class=\"hint\">{hint}</p>"));
    format!(
        "<h2>{}: {}</h2>{}<p>Replay: <code>KUBEWRIGHT_REPLAY='{}'</code></p><table>{lines}</table>",
        escaped(failure.violation.oracle()),
        escaped(&failure.violation.to_string()),
        hint.unwrap_or_default(),
        escaped(&failure.token),
    )
}
