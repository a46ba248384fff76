//! Adds and removes a `mod` line, and nothing else of a file.

/// The text with a line for this module, among the others in their order.
pub(crate) fn with(text: &str, module: &str) -> String {
    let line = format!("pub mod {module};");
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.contains(&&*line) {
        return text.to_owned();
    }
    let later = lines
        .iter()
        .position(|other| is_line(other) && **other > *line);
    let last = lines.iter().rposition(|other| is_line(other));
    match (later, last) {
        (Some(place), _) => lines.insert(place, &line),
        (None, Some(last)) => lines.insert(last + 1, &line),
        (None, None) => {
            lines.push("");
            lines.push(&line);
        }
    }
    lines.join("\n") + "\n"
}

/// The text without the line for this module, as it was before there was one.
pub(crate) fn without(text: &str, module: &str) -> String {
    let line = format!("pub mod {module};");
    let kept: Vec<&str> = text.lines().filter(|other| *other != line).collect();
    if kept.len() == text.lines().count() {
        return text.to_owned();
    }
    kept.join("\n").trim_end().to_owned() + "\n"
}

/// Whether nothing is in a file but its description.
pub(crate) fn is_empty(text: &str) -> bool {
    let mut lines = text.lines();
    lines.all(|line| line.trim().is_empty() || line.starts_with("//!"))
}

/// Whether nothing is in a file but its description and lines for modules.
pub(crate) fn is_chain(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !is_line(line));
    lines.all(|line| line.trim().is_empty() || line.starts_with("//!"))
}

/// Whether it is the line for a module.
fn is_line(line: &str) -> bool {
    let name = line.strip_prefix("pub mod ");
    let name = name.and_then(|line| line.strip_suffix(';'));
    name.is_some_and(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// The text of `main.rs` with the module of webhooks, where the formatter wants it.
pub(crate) fn with_webhooks(main: &str) -> String {
    for before in ["mod tests;\n", "mod controller;\n"] {
        if main.contains(before) {
            return main.replacen(before, &format!("{before}mod webhook;\n"), 1);
        }
    }
    format!("{main}\nmod webhook;\n")
}

/// The text of `main.rs` without the module of webhooks.
pub(crate) fn without_webhooks(main: &str) -> String {
    main.replacen("mod webhook;\n", "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_added_in_order_and_removed_without_a_trace() {
        let empty = "//! Kinds.\n";
        let one = with(empty, "b");
        assert_eq!(one, "//! Kinds.\n\npub mod b;\n");
        let two = with(&with(&one, "c"), "a");
        assert_eq!(two, "//! Kinds.\n\npub mod a;\npub mod b;\npub mod c;\n");
        assert_eq!(with(&two, "b"), two, "twice changes nothing");
        let back = without(&without(&two, "c"), "a");
        assert_eq!(back, one);
        assert_eq!(without(&back, "b"), empty);
        assert_eq!(without(empty, "b"), empty);
        assert!(is_empty(empty) && !is_empty(&one));
        assert!(is_chain(&two) && !is_chain("//! Kinds.\n\nfn own() {}\n"));
    }

    #[test]
    fn own_code_around_the_lines_stays() {
        let text = "//! Kinds.\n\nuse std::fmt;\n\npub mod b;\n\nfn own() {}\n";
        let more = with(text, "c");
        assert_eq!(
            more,
            text.replace("pub mod b;\n", "pub mod b;\npub mod c;\n")
        );
        assert_eq!(without(&more, "c"), text);
    }
}
