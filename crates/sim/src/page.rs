//! Reports for machines and for people: JSON, and one page of HTML that needs nothing else.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::report::{Failure, Report};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1f2328}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2.5rem;color:#b42318}code,td{font-family:ui-monospace,monospace;font-size:13px}\
table{border-collapse:collapse;width:100%}td{padding:1px 8px;border-left:3px solid #d0d7de;white-space:pre-wrap}\
tr.fault td{background:#fff1f0;border-color:#b42318;font-weight:600}tr.step td{background:#eef4ff;border-color:#175cd3}\
.hint{background:#fffaeb;padding:.5rem .8rem;border-left:3px solid #dc6803}.clean{color:#067647}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}tr.fault td{background:#3d1512}tr.step td{background:#12213d}\
.hint{background:#332701}}";

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
        let name = escaped(&self.name);
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
        format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{name}</title><style>{STYLE}</style>\
             <h1>{name}</h1><p class=\"{class}\">{summary}</p><ul>{kinds}</ul>{failures}</html>\n"
        )
    }

    /// Writes the report as `NAME.json` and `NAME.html` into a directory, which is made if it is missing.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        std::fs::create_dir_all(directory)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = self.name.replace(|c| !is_plain(c), "-");
        let json = format!("{:#}\n", self.to_json());
        std::fs::write(directory.join(format!("{name}.json")), json)?;
        std::fs::write(directory.join(format!("{name}.html")), self.to_html())
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

fn row(line: &str) -> String {
    let class = match line {
        line if line.contains("FAULT ") || line.contains("operator ends") => "fault",
        line if line.contains("STEP ") => "step",
        _ => "",
    };
    format!("<tr class=\"{class}\"><td>{}</td></tr>", escaped(line))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
