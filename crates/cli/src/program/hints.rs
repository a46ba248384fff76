//! What to do about errors of the compiler that do not say so themselves.

use std::io::{IsTerminal as _, stderr};

/// A part of what the compiler says, and what to do about it.
const KNOWN: &[(&str, &str)] = &[(
    "cannot find attribute `k8s` in this scope",
    "#[k8s(..)] is read by an attribute on the type around it: write #[kubewright::schema] above its #[derive(..)], or \
     #[kubewright::api] if it is the spec of a kind",
)];

/// What to do about what the compiler says, if it is known.
pub(super) fn of(message: &str) -> Option<&'static str> {
    let mut known = KNOWN.iter();
    let found = known.find(|(part, _)| message.contains(part));
    found.map(|(_, hint)| *hint)
}

/// Has cargo say in JSON what it does, and the compiler's own words as people see them.
pub(super) fn message_format() -> &'static str {
    if stderr().is_terminal() {
        "--message-format=json-diagnostic-rendered-ansi"
    } else {
        "--message-format=json"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_that_is_missing_is_named() {
        let hint = of("cannot find attribute `k8s` in this scope").expect("it is known");
        assert!(hint.contains("#[kubewright::schema]"), "{hint}");
        assert_eq!(of("cannot find attribute `other` in this scope"), None);
    }
}
