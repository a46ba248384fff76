//! `DefaultStorageClass`: claims that ask for no class get the one that is marked.

use serde_json::Value;

use super::attributes::{AdmissionRequest, Operation};
use crate::kinds::value::{ensure, set};
use crate::object;

const MARKS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// An old way for a claim to name its class.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Whether it is about a new claim without a class.
pub(super) fn concerns(request: &AdmissionRequest<'_>, claim: &Value) -> bool {
    request.operation == Operation::Create
        && request.is_whole("", "PersistentVolumeClaim")
        && claim["spec"]["storageClassName"].is_null()
        && claim["metadata"]["annotations"][CLASS].is_null()
}

/// Gives a claim the class that is marked as the default.
pub(super) fn default(classes: &[Value], claim: &mut Value) {
    if let Some(class) = newest_marked(classes, &MARKS) {
        let name = object::name(class);
        set(ensure(claim, "spec"), "storageClassName", name);
    }
}

/// The class with one of these annotations: the newest of several, by name among equals.
pub(super) fn newest_marked<'v>(classes: &'v [Value], marks: &[&str]) -> Option<&'v Value> {
    let marked = |class: &&Value| {
        let annotations = &class["metadata"]["annotations"];
        marks.iter().any(|mark| annotations[mark] == "true")
    };
    let mut marked: Vec<&Value> = classes.iter().filter(marked).collect();
    let created = |class: &Value| object::meta_str(class, "creationTimestamp").to_owned();
    marked.sort_by(|a, b| {
        let newest_first = created(b).cmp(&created(a));
        newest_first.then_with(|| object::name(a).cmp(object::name(b)))
    });
    marked.first().copied()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_marked_class_is_the_default() {
        let class = |name: &str, mark: &str, at: &str| json!({"metadata": {"name": name, "creationTimestamp": at, "annotations": {MARKS[0]: mark}}});
        let old = "2026-01-01T00:00:00Z";
        let new = "2026-01-02T00:00:00Z";
        for (classes, expect) in [
            (vec![], json!(null)),
            (vec![class("a", "false", old)], json!(null)),
            (
                vec![class("b", "true", old), class("a", "true", old)],
                json!("a"),
            ),
            (
                vec![class("a", "true", old), class("b", "true", new)],
                json!("b"),
            ),
        ] {
            let mut claim = json!({});
            default(&classes, &mut claim);
            assert_eq!(claim["spec"]["storageClassName"], expect);
        }
    }
}
