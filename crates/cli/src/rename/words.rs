//! Replaces words in Rust sources. Pure, and about whole words alone.

use kubewright_manifests::project::Resource;

/// What the names of scaffolded types end with, behind that of their kind.
const SUFFIXES: [&str; 4] = ["", "Spec", "Status", "Reconciler"];

/// The text with another kind: its own type and those that are named after it, in code, texts and comments.
pub(super) fn kind(text: &str, old: &str, new: &str) -> String {
    replaced(text, |word, _, _| {
        let suffix = word.strip_prefix(old)?;
        SUFFIXES.contains(&suffix).then(|| format!("{new}{suffix}"))
    })
}

/// The code of a type with the attributes of the new names.
pub(super) fn attributes(text: &str, old: &Resource, new: &Resource) -> String {
    let version = |version: &str| format!("version = \"{version}\"");
    let mut text = text.replacen(&version(&old.version), &version(&new.version), 1);
    let line = |plural: &Option<String>| match plural {
        Some(plural) => format!("    plural = \"{plural}\",\n"),
        None => String::new(),
    };
    let kind = format!("    kind = \"{}\",\n", new.kind);
    text = text.replacen(&line(&old.plural), "", usize::from(old.plural.is_some()));
    text.replacen(&kind, &format!("{kind}{}", line(&new.plural)), 1)
}

/// The code of webhooks with the new names in their attributes.
pub(super) fn webhooks(text: &str, old: &Resource, new: &Resource) -> String {
    let parts = |it: &Resource| {
        let (module, version) = (it.module(), &it.version);
        let group = it.qualified_group().replace('.', "-");
        [
            format!("name = \"m{module}-{version}."),
            format!("name = \"v{module}-{version}."),
            format!("/mutate-{group}-{version}-{module}\""),
            format!("/validate-{group}-{version}-{module}\""),
            format!("versions = \"{version}\""),
            format!("resources = \"{}\"", it.plural()),
        ]
    };
    let pairs = parts(old).into_iter().zip(parts(new));
    pairs.fold(text.to_owned(), |text, (old, new)| text.replace(&old, &new))
}

/// The code of webhooks with another name for a version that is converted.
pub(super) fn spokes(text: &str, old: &str, new: &str) -> String {
    let said = |version: &str| format!("/// Version {version} to and from");
    text.replace(&said(old), &said(new))
}

/// The code of a controller, or of its tests, where it has the function and the name of the controller.
pub(super) fn controller(text: &str, old: &str, new: &str) -> String {
    replaced(text, |word, before, after| {
        let is_call = after.starts_with('(') && !before.ends_with('.');
        let is_import = before.ends_with("super::");
        let is_text =
            before.ends_with('"') && (after.starts_with('"') || after.starts_with("-walk\""));
        let is_constant = before.ends_with("const CONTAINER: &str = \"");
        let is_it = word == old && (is_call || is_import || is_text || is_constant);
        is_it.then(|| new.to_owned())
    })
}

/// The text with other words, where the function has one; it is given the word, what is before it, and what follows.
fn replaced(text: &str, other: impl Fn(&str, &str, &str) -> Option<String>) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if length == 0 {
            let step = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..step]);
            at += step;
            continue;
        }
        let word = &rest[..length];
        match other(word, &text[..at], &rest[length..]) {
            Some(new) => out.push_str(&new),
            None => out.push_str(word),
        }
        at += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_a_kind_are_renamed_and_others_are_not() {
        let text = "struct GuestbookSpec; impl A<Guestbook> for GuestbookReconciler {} // Guestbook, Guestbooks, MyGuestbook";
        let expected =
            "struct BookSpec; impl A<Book> for BookReconciler {} // Book, Guestbooks, MyGuestbook";
        assert_eq!(kind(text, "Guestbook", "Book"), expected);
    }

    #[test]
    fn controllers_are_renamed_and_variables_are_not() {
        for (text, expected) in [
            ("fn page() -> Controller {", "fn leaf() -> Controller {"),
            ("use super::page;", "use super::leaf;"),
            ("of::<A>(\"page\")", "of::<A>(\"leaf\")"),
            ("operator(\"page-walk\")", "operator(\"leaf-walk\")"),
            ("let page = self.page();", "let page = self.page();"),
            ("\"turn the page\"", "\"turn the page\""),
        ] {
            assert_eq!(controller(text, "page", "leaf"), expected);
        }
    }
}
