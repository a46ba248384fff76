//! Webhooks that are added to a file which somebody has worked on, without losing what was written there.

use anyhow::bail;
use kubewright_manifests::project::WebhookFlags;

/// The module of the names that a conversion needs.
const WEBHOOK: &str = "kubewright::webhook";
/// Where tests begin, which stay at the end of a file.
const TESTS: &str = "\n#[cfg(test)]\n";

/// What is asked for beyond what there is; nothing if what there is has to change for it, as a path does.
pub(super) fn added(before: &WebhookFlags, after: &WebhookFlags) -> Option<WebhookFlags> {
    let moved = before.defaulting && before.defaulting_path != after.defaulting_path
        || before.validation && before.validation_path != after.validation_path;
    if moved {
        return None;
    }
    let mut added = after.clone();
    added.defaulting &= !before.defaulting;
    added.validation &= !before.validation;
    added.spoke.retain(|spoke| !before.spoke.contains(spoke));
    added.conversion &= !added.spoke.is_empty();
    Some(added)
}

/// The text of a file with the functions of another below its own, and what these need to be imported.
///
/// # Errors
/// When the file has a function of such a name already.
pub(super) fn amended(text: &str, code: &str) -> anyhow::Result<String> {
    for name in ["default", "validate"] {
        let function = format!("fn {name}(");
        if code.contains(&function) && text.contains(&function) {
            bail!("it has a function {name} already");
        }
    }
    let (head, functions) = split(code);
    let wanted = ["Spoke", "same_fields"];
    let missing = wanted.into_iter().filter(|name| {
        let is_needed = imports(head).any(|it| has_word(it, name));
        is_needed && !imports(text).any(|it| has_word(it, name))
    });
    let missing: Vec<&str> = missing.collect();
    let import = match missing.as_slice() {
        [] => String::new(),
        [name] => format!("use {WEBHOOK}::{name};\n"),
        names => format!("use {WEBHOOK}::{{{}}};\n", names.join(", ")),
    };
    let text = if import.is_empty() {
        text.to_owned()
    } else {
        with_import(text, &import)
    };
    let (own, tests) = text.split_at(text.find(TESTS).unwrap_or(text.len()));
    let own = own.trim_end();
    let functions = functions.trim();
    Ok(if functions.is_empty() {
        text
    } else {
        format!("{own}\n\n{functions}\n{tests}")
    })
}

/// A scaffolded file in two: up to the last import, and what follows.
fn split(code: &str) -> (&str, &str) {
    let last = code.rfind("\nuse ").map_or(0, |at| at + 1);
    let end = code[last..].find('\n').map_or(code.len(), |at| last + at);
    code.split_at(end)
}

/// The imports of a file, each up to its semicolon.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("use ").map(|(at, _)| at);
    let starts = starts.filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
    starts.filter_map(|at| text[at..].split(';').next())
}

fn has_word(import: &str, word: &str) -> bool {
    let mut words = import.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|it| it == word)
}

/// The text with an import before all others, in a group of its own, so that the order of the others does not matter.
fn with_import(text: &str, import: &str) -> String {
    let (above, below) = text.split_at(first_import(text));
    let space = if above.is_empty() || above.ends_with("\n\n") {
        ""
    } else {
        "\n"
    };
    format!("{above}{space}{import}\n{}", below.trim_start())
}

/// Where the first import begins; in a file without imports, where the comments about the file end.
fn first_import(text: &str) -> usize {
    let mut at = 0;
    let mut after_comments = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("use ") {
            return at;
        }
        at += line.len();
        if line.starts_with("//!") {
            after_comments = at;
        }
    }
    after_comments
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "//! Webhooks.\n\nuse kubewright::webhook::{Spoke, same_fields};\n\nuse crate::api::v1::page::Page;\n\n\
        /// Version v2.\nimpl Spoke<Page> for V2 {}\n";

    #[test]
    fn functions_come_before_the_tests_and_nothing_is_imported_twice() {
        let text = "//! Mine.\n\nuse kubewright::webhook::{FieldErrors, Spoke};\n\nfn validate() {}\n\n#[cfg(test)]\nmod tests {}\n";
        let expected = "//! Mine.\n\nuse kubewright::webhook::same_fields;\n\nuse kubewright::webhook::{FieldErrors, Spoke};\n\n\
            fn validate() {}\n\n/// Version v2.\nimpl Spoke<Page> for V2 {}\n\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(amended(text, CODE).expect("it can be"), expected);
    }

    #[test]
    fn file_without_imports_gets_them_below_what_it_says_of_itself() {
        let text = "//! Mine.\n//! All of it.\n\nfn validate() {}\n";
        let amended = amended(text, CODE).expect("it can be");
        let import =
            "//! All of it.\n\nuse kubewright::webhook::{Spoke, same_fields};\n\nfn validate";
        assert!(amended.contains(import), "{amended}");
    }

    #[test]
    fn function_of_the_same_name_is_not_written_again() {
        let code = "use a::Page;\n\npub fn default(_object: &mut Page) {\n}\n";
        let refused = amended("fn default(mine: &mut Page) {}\n", code);
        let refused = refused.expect_err("it is there").to_string();
        assert_eq!(refused, "it has a function default already");
    }

    #[test]
    fn only_what_is_not_there_is_added() {
        let flags = |defaulting, spokes: &[&str]| WebhookFlags {
            defaulting,
            conversion: !spokes.is_empty(),
            spoke: spokes.iter().map(|it| (*it).to_owned()).collect(),
            ..WebhookFlags::default()
        };
        let new = added(&flags(true, &["v2"]), &flags(true, &["v2", "v3"]));
        assert_eq!(new, Some(flags(false, &["v3"])));
        let mut moved = flags(true, &[]);
        moved.defaulting_path = Some("/elsewhere".to_owned());
        assert_eq!(added(&flags(true, &[]), &moved), None);
    }
}
