//! Methods that operators use most, each of which has an example in its documentation.

use crate::tree::TextFile;

/// The methods that examples, book and scaffold call most often, by file.
pub const MOST_USED: [(&str, &[&str]); 14] = [
    (
        "crates/cache/src/key.rs",
        &["of", "parse", "sibling", "name", "namespace"],
    ),
    ("crates/cache/src/list_watch.rs", &["all", "namespace"]),
    ("crates/cache/src/reader.rs", &["get", "list", "keys"]),
    ("crates/kubewright/src/testing/builder.rs", &["nodes"]),
    (
        "crates/kubewright/src/testing/wait.rs",
        &["until", "until_some", "settled", "assert_no_writes"],
    ),
    (
        "crates/kubewright/src/testing/world.rs",
        &["start", "builder", "stop_operator"],
    ),
    ("crates/runtime/src/client/query.rs", &["all", "background"]),
    (
        "crates/runtime/src/client/typed.rs",
        &[
            "get",
            "list",
            "live",
            "create",
            "delete",
            "modify",
            "modify_status",
            "apply_owned",
        ],
    ),
    ("crates/runtime/src/conditions.rs", &["set", "find"]),
    (
        "crates/runtime/src/context.rs",
        &["key", "client", "now", "event"],
    ),
    (
        "crates/runtime/src/controller/of_objects.rs",
        &["of", "owns", "reconciler"],
    ),
    ("crates/runtime/src/manager/options.rs", &["controller"]),
    ("crates/sim/src/campaign.rs", &["step", "sample", "check"]),
    ("crates/sim/src/campaign/runs.rs", &["run"]),
];

/// The methods of [`MOST_USED`] without an example, or that are not there.
pub fn without_example(files: &[TextFile]) -> Vec<String> {
    let mut missing = Vec::new();
    for (path, names) in MOST_USED {
        let file = files.iter().find(|file| file.path.as_os_str() == path);
        let text = file.map(|file| file.text.as_str()).unwrap_or_default();
        let without = names.iter().filter(|name| !has_example(text, name));
        missing.extend(without.map(|name| format!("{path}: {name}")));
    }
    missing
}

/// Whether a public function of this name is documented with a block of code.
fn has_example(text: &str, name: &str) -> bool {
    let mut example = false;
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            example |= comment.trim().starts_with("```");
        } else if !line.starts_with("#[") {
            if example && is_function(line, name) {
                return true;
            }
            example = false;
        }
    }
    false
}

fn is_function(line: &str, name: &str) -> bool {
    let rest = line
        .strip_prefix("pub ")
        .map(|rest| rest.trim_start_matches("async "));
    let after = rest.and_then(|rest| rest.strip_prefix("fn ")?.strip_prefix(name));
    after.is_some_and(|after| after.starts_with(['(', '<']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_belongs_to_the_function_below_it() {
        let text = "/// Shown.\n///\n/// ```\n/// get();\n/// ```\n#[must_use]\npub async fn get<K>() {}\n/// Bare.\npub fn list() {}";
        assert!(has_example(text, "get"));
        for other in ["list", "ge", "getter"] {
            assert!(!has_example(text, other), "{other}");
        }
    }

    #[test]
    fn a_file_that_is_gone_lacks_its_examples() {
        let all: usize = MOST_USED.iter().map(|(_, names)| names.len()).sum();
        assert_eq!(without_example(&[]).len(), all);
        assert!(all >= 40);
    }
}
