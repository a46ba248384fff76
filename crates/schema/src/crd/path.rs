//! Paths of fields as messages write them: `spec.items[0]`, `spec.labels[key]`.

/// `a.b`, or `b` alone at the root.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// `a[b]`
pub(super) fn key(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}

/// `a[0]`
pub(super) fn index(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}
