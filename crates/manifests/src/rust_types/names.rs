//! Names of Kubernetes as names of Rust.

/// Words that may be names only with `r#` before them.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];
/// Words that may not be names at all.
const NEVER: &[&str] = &["self", "super", "crate", "_", ""];
/// Types that the source uses by these names.
pub(super) const USED: &[&str] = &[
    "String",
    "Option",
    "Vec",
    "BTreeMap",
    "Value",
    "Condition",
    "IntOrString",
    "CustomResource",
    "JsonSchema",
    "Serialize",
    "Deserialize",
    "Self",
    "Default",
    "Clone",
    "Debug",
    "PartialEq",
    "Some",
    "None",
    "Box",
];

/// `clusterIP` as `cluster_ip`, `podIPs` as `pod_ips`, `HTTPServer` as `http_server`.
pub(super) fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            if !out.is_empty() && !out.ends_with('_') {
                out.push('_');
            }
            continue;
        }
        let previous = i.checked_sub(1).map(|i| chars[i]);
        let after_word = previous.is_some_and(|p| p.is_ascii_lowercase() || p.is_ascii_digit());
        let plural = chars.get(i + 1) == Some(&'s')
            && !chars.get(i + 2).is_some_and(char::is_ascii_lowercase);
        let begins_word = chars.get(i + 1).is_some_and(char::is_ascii_lowercase) && !plural;
        let after_acronym = previous.is_some_and(|p| p.is_ascii_uppercase()) && begins_word;
        if c.is_ascii_uppercase() && (after_word || after_acronym) && !out.ends_with('_') {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    let out = out.trim_end_matches('_');
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{out}")
    } else {
        out.to_owned()
    }
}

/// What serde's `rename_all = "camelCase"` makes of a field.
pub(super) fn camel(field: &str) -> String {
    let mut out = String::new();
    let mut capital = false;
    for c in field.chars() {
        if c == '_' {
            capital = true;
        } else {
            out.push(if capital { c.to_ascii_uppercase() } else { c });
            capital = false;
        }
    }
    let first = out.chars().next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(out.chars().skip(1)).collect()
}

/// A part of the name of a type: `tls-mode` as `TlsMode`.
pub(super) fn pascal(name: &str) -> String {
    let mut out = String::new();
    let mut capital = true;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(if capital { c.to_ascii_uppercase() } else { c });
            capital = false;
        } else {
            capital = true;
        }
    }
    out
}

/// The name of a variant: `us-east-1` as `UsEast1`, `1h` as `V1h`, nothing as `Empty`.
pub(super) fn variant(value: &str) -> String {
    let name = pascal(value);
    match name.chars().next() {
        None if value.is_empty() => "Empty".to_owned(),
        None => "Other".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("V{name}"),
        Some(_) if name == "Self" => "SelfValue".to_owned(),
        Some(_) => name,
    }
}

/// The name of a field as it is written in source.
pub(super) fn field(snake: &str) -> String {
    if NEVER.contains(&snake) {
        format!("{snake}_")
    } else if KEYWORDS.contains(&snake) {
        format!("r#{snake}")
    } else {
        snake.to_owned()
    }
}

/// What one of these is called.
pub(super) fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if name.ends_with(ending) {
            return name[..name.len() - 2].to_owned();
        }
    }
    let keeps = ["ss", "us", "is", "as"]
        .iter()
        .any(|ending| name.ends_with(ending));
    match name.strip_suffix('s') {
        Some(stem) if !keeps && !stem.is_empty() => stem.to_owned(),
        _ => name.to_owned(),
    }
}

/// Whether a kind can be the name of a type.
pub(super) fn is_type(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        && !USED.contains(&name)
}

/// The name, or one with a number behind it that nobody has yet.
pub(super) fn unique(name: String, taken: impl Fn(&str) -> bool) -> String {
    if !taken(&name) {
        return name;
    }
    let numbered = (2_u32..).map(|number| format!("{name}{number}"));
    let mut free = numbered.filter(|name| !taken(name));
    free.next().expect("there are more numbers than names")
}
