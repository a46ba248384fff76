//! Names that users type or read (flags, attribute options, metrics, annotations), as the sources have them: the reference page has
//! to list each.

use std::collections::BTreeSet;

/// Flags of operators, from the source that declares them: the names in `text("..")` and `switch("..")`.
pub fn flags(source: &str) -> BTreeSet<String> {
    let calls = ["text(\"", "switch(\""];
    let names = calls.iter().flat_map(|call| after_each(source, call));
    names.map(|name| format!("--{name}")).collect()
}

/// The options that an attribute knows, from the constant `KNOWN` of its source.
pub fn attribute_options(source: &str) -> BTreeSet<String> {
    let list = source.split("const KNOWN: &[&str] = &[").nth(1);
    let list = list.and_then(|rest| rest.split("];").next());
    literals(list.unwrap_or_default())
        .map(str::to_owned)
        .collect()
}

/// String literals of a source that look like the name of a metric with one of these prefixes, or that are put behind `prefix` there.
pub fn metrics(source: &str, prefixes: &[&str]) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let is_name = |text: &&str| {
        let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
        text.chars().all(is_word) && prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    literals(code).filter(is_name).map(str::to_owned).collect()
}

/// Annotations and labels of ours: literals below `kubewright.dev/`. A prefix alone is not a name.
pub fn annotations(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let ours = |text: &&str| {
        let name = text.strip_prefix("kubewright.dev/");
        // Versions of formats are written like annotations and are none.
        name.is_some_and(|name| !name.is_empty() && !name.starts_with('v'))
    };
    literals(code).filter(ours).map(str::to_owned).collect()
}

/// The names between backticks in the first cell of each row of a page's tables.
pub fn listed(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|line| line.trim_matches('|').split('|').next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// What follows each occurrence of `start`, up to the closing quote.
fn after_each<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
}

/// The string literals of a source, roughly: what stands between two quotes of one line.
fn literals(source: &str) -> impl Iterator<Item = &str> {
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split('"').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_are_read_from_sources() {
        let source = r#".arg(text("kubeconfig", "FILE")).arg(switch("leader-elect", "false"))"#;
        assert_eq!(flags(source), set(&["--kubeconfig", "--leader-elect"]));
        let source = "const KNOWN: &[&str] = &[\n    \"name\",\n    \"path\",\n];\nlet a = \"x\";";
        assert_eq!(attribute_options(source), set(&["name", "path"]));
        let source = "// \"a_one\"\nf(\"a_total\", \"help a_total\");\n#[cfg(test)]\nf(\"a_test\")";
        assert_eq!(metrics(source, &["a_"]), set(&["a_total"]));
        let source = "f(\"kubewright.dev/shards\", \"kubewright.dev/v1\", \"kubewright.dev/\")";
        assert_eq!(annotations(source), set(&["kubewright.dev/shards"]));
    }

    #[test]
    fn names_are_read_from_the_first_cells_of_tables() {
        let page = "`not` here\n| name | x |\n|---|---|\n| `a`, `b` | `c` |\n";
        assert_eq!(listed(page), set(&["a", "b"]));
    }
}
