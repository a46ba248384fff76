//! The names that fields have in JSON, as serde and schemars decide, and in CEL, as Kubernetes escapes them.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// How the names of all fields of a type are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// Names are written as the fields have them.
    Unchanged,
    Lower,
    Upper,
    Pascal,
    Camel,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    /// What `rename_all` of a type says.
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        match option(attributes, "rename_all").as_deref() {
            Some("lowercase") => Self::Lower,
            Some("UPPERCASE") => Self::Upper,
            Some("PascalCase") => Self::Pascal,
            Some("camelCase") => Self::Camel,
            Some("SCREAMING_SNAKE_CASE") => Self::ScreamingSnake,
            Some("kebab-case") => Self::Kebab,
            Some("SCREAMING-KEBAB-CASE") => Self::ScreamingKebab,
            _ => Self::Unchanged,
        }
    }

    /// Changes the name of a field.
    pub(crate) fn apply(self, field: &str) -> String {
        match self {
            Self::Unchanged | Self::Lower => field.to_owned(),
            Self::Upper | Self::ScreamingSnake => field.to_ascii_uppercase(),
            Self::Pascal => pascal(field),
            Self::Camel => {
                let pascal = pascal(field);
                let mut letters = pascal.chars();
                let first = letters.next().map(|first| first.to_ascii_lowercase());
                first.into_iter().chain(letters).collect()
            }
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(field: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    field.split('_').map(capital).collect()
}

/// The name of a field in JSON.
pub(crate) fn in_json(field: &syn::Field, case: Case) -> Option<String> {
    let name = field.ident.as_ref()?.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name);
    Some(option(&field.attrs, "rename").unwrap_or_else(|| case.apply(name)))
}

/// An option of `#[serde(..)]` or `#[schemars(..)]`, the latter first. Of one for both directions, that for reading.
fn option(attributes: &[Attribute], name: &str) -> Option<String> {
    let find = |from: &str| {
        metas(attributes, from)
            .into_iter()
            .find_map(|meta| value(&meta, name))
    };
    find("schemars").or_else(|| find("serde"))
}

fn value(meta: &Meta, name: &str) -> Option<String> {
    match meta {
        Meta::NameValue(pair) if pair.path.is_ident(name) => crate::list::text(pair.value.clone())
            .ok()
            .map(|text| text.value()),
        Meta::List(list) if list.path.is_ident(name) => {
            let inner = list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .ok()?;
            inner.iter().find_map(|meta| value(meta, "deserialize"))
        }
        _ => None,
    }
}

/// All options in attributes of a name. What cannot be read is left to those whose attribute it is.
pub(crate) fn metas(attributes: &[Attribute], path: &str) -> Vec<Meta> {
    let attributes = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident(path));
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    let lists = attributes.filter_map(|attribute| attribute.parse_args_with(parse).ok());
    lists.flatten().collect()
}

/// Whether `#[serde(..)]` has one of these options.
pub(crate) fn serde_has(attributes: &[Attribute], options: &[&str]) -> bool {
    let metas = metas(attributes, "serde");
    metas
        .iter()
        .any(|meta| options.iter().any(|option| meta.path().is_ident(option)))
}

const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
];

/// A property as CEL rules of Kubernetes name it.
pub(crate) fn in_cel(property: &str) -> String {
    if RESERVED.contains(&property) {
        return format!("__{property}__");
    }
    let escaped = property.replace("__", "__underscores__");
    escaped
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn names_follow_serde() {
        let check =
            |case: Case, expected: &str| assert_eq!(case.apply("observed_generation"), expected);
        check(Case::Unchanged, "observed_generation");
        check(Case::Camel, "observedGeneration");
        check(Case::Pascal, "ObservedGeneration");
        check(Case::Kebab, "observed-generation");
        check(Case::ScreamingSnake, "OBSERVED_GENERATION");
    }

    #[test]
    fn a_rename_wins_over_the_rule_of_the_type() {
        let item: syn::ItemStruct = parse_quote! {
            #[serde(rename_all = "camelCase")]
            struct A {
                #[serde(rename = "URL")]
                url: String,
                #[serde(rename(serialize = "x", deserialize = "y"))]
                both: String,
                host_name: String,
                r#type: String,
            }
        };
        let case = Case::of(&item.attrs);
        let names: Vec<_> = item
            .fields
            .iter()
            .filter_map(|field| in_json(field, case))
            .collect();
        assert_eq!(names, ["URL", "y", "hostName", "type"]);
    }

    #[test]
    fn names_are_escaped_for_cel() {
        let check = |name: &str, expected: &str| assert_eq!(in_cel(name), expected);
        check("size", "size");
        check("namespace", "__namespace__");
        check("a-b", "a__dash__b");
        check("a__b", "a__underscores__b");
    }
}
