//! What may be a name of what, and why not.

use std::fmt;

/// What something is the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Name {
    /// A project: a DNS label, since names of objects begin with it.
    Project,
    /// A domain: what groups end with.
    Domain,
    /// The first part of a group.
    Group,
    /// A version of an API.
    Version,
    /// A kind, in upper camel case.
    Kind,
    /// The plural of a kind, as in paths.
    Plural,
    /// A controller: a DNS label.
    Controller,
}

/// Why a name cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be the name of a {what}: {reason}")]
pub struct NameError {
    what: Name,
    name: String,
    reason: &'static str,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Project => "project",
            Self::Domain => "domain",
            Self::Group => "group",
            Self::Version => "version",
            Self::Kind => "kind",
            Self::Plural => "plural",
            Self::Controller => "controller",
        })
    }
}

/// The longest name that leaves room for what is put behind it.
const MAX_PROJECT: usize = 40;

/// Words that no module can be called.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

impl Name {
    /// Whether this can be the name.
    ///
    /// # Errors
    /// When it cannot; the error says what a name has to be like.
    pub fn check(self, name: &str) -> Result<(), NameError> {
        let reason = match self {
            Self::Project if name.len() > MAX_PROJECT => Some("it is longer than 40 characters"),
            Self::Project if !starts_with_letter(name) || !is_label(name) => {
                Some("use small letters, digits and '-', beginning with a letter")
            }
            Self::Domain if !is_subdomain(name) => {
                Some("use labels of small letters, digits and '-' with dots between them")
            }
            Self::Group if !name.is_empty() && !is_subdomain(name) => {
                Some("use small letters, digits and '-'")
            }
            Self::Version if !is_version(name) => Some("use v1, v1alpha1, v2beta3 and the like"),
            Self::Kind => kind_reason(name),
            Self::Plural | Self::Controller if !starts_with_letter(name) || !is_label(name) => {
                Some("use small letters, digits and '-', beginning with a letter")
            }
            _ => None,
        };
        match reason {
            None => Ok(()),
            Some(reason) => Err(NameError {
                what: self,
                name: name.chars().take(80).collect(),
                reason,
            }),
        }
    }
}

fn kind_reason(name: &str) -> Option<&'static str> {
    let camel = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    if !camel {
        return Some("use letters and digits in CamelCase, such as Guestbook");
    }
    if name.len() > 63 {
        return Some("it is longer than 63 characters");
    }
    let module = name.to_ascii_lowercase();
    KEYWORDS
        .contains(&&*module)
        .then_some("its module would be a keyword of Rust")
}

fn starts_with_letter(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_label(name: &str) -> bool {
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.chars().all(|c| small(c) || c == '-')
        && name.starts_with(small)
        && name.ends_with(small)
}

fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label)
}

/// `v` and a number, perhaps with `alpha` or `beta` and another.
fn is_version(name: &str) -> bool {
    let number = |text: &str| {
        (1..=4).contains(&text.len())
            && !text.starts_with('0')
            && text.chars().all(|c| c.is_ascii_digit())
    };
    let Some(rest) = name.strip_prefix('v') else {
        return false;
    };
    let parts = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    match parts {
        Some((major, minor)) => number(major) && number(minor),
        None => number(rest),
    }
}

/// The plural of a kind, as the derive of its type makes it.
pub fn plural_of(kind: &str) -> String {
    let word = kind.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if word == "endpoints" || word == "endpointslices" {
        return word;
    }
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}
