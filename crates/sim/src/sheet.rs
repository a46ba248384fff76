//! What the reports of campaigns and walks have in common: the page of HTML, and where they are written.

use std::io;
use std::path::Path;

use serde_json::Value;

/// The variable that names a directory for reports.
const REPORTS: &str = "KUBEWRIGHT_REPORTS";
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1f2328}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2.5rem;color:#b42318}code,td{font-family:ui-monospace,monospace;font-size:13px}\
table{border-collapse:collapse;width:100%}td{padding:1px 8px;border-left:3px solid #d0d7de;white-space:pre-wrap}\
tr.fault td{background:#fff1f0;border-color:#b42318;font-weight:600}tr.step td{background:#eef4ff;border-color:#175cd3}\
.hint{background:#fffaeb;padding:.5rem .8rem;border-left:3px solid #dc6803}.clean{color:#067647}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}tr.fault td{background:#3d1512}tr.step td{background:#12213d}\
.hint{background:#332701}}";

/// Writes a report where the environment wants it, if it does.
///
/// # Panics
/// When it cannot be written there.
pub(crate) fn keep(write: impl FnOnce(&Path) -> io::Result<()>) {
    if let Some(directory) = std::env::var_os(REPORTS) {
        let written = write(directory.as_ref());
        written.unwrap_or_else(|error| panic!("{REPORTS}: {error}"));
    }
}

pub(crate) fn write(directory: &Path, name: &str, json: &Value, html: &str) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name = name.replace(|c| !is_plain(c), "-");
    std::fs::write(
        directory.join(format!("{name}.json")),
        format!("{json:#}\n"),
    )?;
    std::fs::write(directory.join(format!("{name}.html")), html)
}

pub(crate) fn page(name: &str, class: &str, summary: &str, body: &str) -> String {
    let name = escaped(name);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{name}</title><style>{STYLE}</style>\
         <h1>{name}</h1><p class=\"{class}\">{summary}</p>{body}</html>\n"
    )
}

pub(crate) fn row(line: &str) -> String {
    let class = match line {
        line if line.contains("FAULT ") || line.contains("operator ends") => "fault",
        line if line.contains("STEP ") => "step",
        _ => "",
    };
    format!("<tr class=\"{class}\"><td>{}</td></tr>", escaped(line))
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
