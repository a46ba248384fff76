//! Label selectors as kubectl writes them, `app=web,tier in (a,b),!legacy`, read at compile time.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, LitStr, Result};

/// A requirement: key, operator of the API, values.
type Requirement = (String, &'static str, Vec<String>);

/// A selector as an expression of its requirements.
pub(crate) fn expression(text: Option<LitStr>) -> Result<TokenStream> {
    let Some(text) = text else {
        return Ok(quote!(::core::option::Option::None));
    };
    let requirements = parse(&text)?;
    let parts = requirements
        .iter()
        .map(|(key, operator, values)| quote!((#key, #operator, &[#(#values),*])));
    Ok(quote!(::core::option::Option::Some(&[#(#parts),*])))
}

fn parse(literal: &LitStr) -> Result<Vec<Requirement>> {
    let text = literal.value();
    let mut requirements = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A comma inside of a list of values does not end a requirement.
        let end = match (rest.find('('), rest.find(',')) {
            (Some(open), Some(comma)) if open < comma => {
                let unclosed =
                    || Error::new_spanned(literal, format!("`{rest}`: a `)` is missing"));
                let close = rest.find(')').ok_or_else(unclosed)?;
                rest[close..]
                    .find(',')
                    .map_or(rest.len(), |comma| close + comma)
            }
            (_, Some(comma)) => comma,
            (_, None) => rest.len(),
        };
        let part = rest[..end].trim();
        requirements.push(requirement(part).ok_or_else(|| not_a_requirement(literal, part))?);
        rest = rest.get(end + 1..).unwrap_or_default().trim_start();
    }
    if requirements.is_empty() {
        let text = "a selector is not empty: `app=web,tier in (a,b),!legacy`";
        Err(Error::new_spanned(literal, text))
    } else {
        Ok(requirements)
    }
}

fn not_a_requirement(literal: &LitStr, part: &str) -> Error {
    let text = format!(
        "`{part}` is not a requirement: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a` or `!a`"
    );
    Error::new_spanned(literal, text)
}

fn requirement(text: &str) -> Option<Requirement> {
    let sound = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
    };
    let of = |key: &str, operator, values: &[&str]| {
        let (key, values): (&str, Vec<&str>) = (
            key.trim(),
            values.iter().map(|value| value.trim()).collect(),
        );
        let fits = sound(key) && values.iter().all(|value| value.is_empty() || sound(value));
        fits.then(|| {
            (
                key.to_owned(),
                operator,
                values.into_iter().map(str::to_owned).collect(),
            )
        })
    };
    if let Some(key) = text.strip_prefix('!') {
        return of(key, "DoesNotExist", &[]);
    }
    if let Some(list) = text.strip_suffix(')') {
        let (head, values) = list.split_once('(')?;
        let values: Vec<&str> = values.split(',').collect();
        let (key, word) = head.trim().split_once(' ')?;
        return match word.trim() {
            "in" => of(key, "In", &values),
            "notin" => of(key, "NotIn", &values),
            _ => None,
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return of(key, "NotIn", &[value]);
    }
    match text.split_once('=') {
        Some((key, value)) => of(key, "=", &[value.strip_prefix('=').unwrap_or(value)]),
        None => of(text, "Exists", &[]),
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_writes_them() {
        let check = |text: &str, expected: &[(&str, &str, &[&str])]| {
            let found = parse(&literal(text)).expect("a selector");
            let found: Vec<_> = found
                .iter()
                .map(|(key, operator, values)| {
                    (
                        key.as_str(),
                        *operator,
                        values.iter().map(String::as_str).collect::<Vec<_>>(),
                    )
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(k, o, v)| (*k, *o, v.to_vec()))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("app=web", &[("app", "=", &["web"])]);
        check(
            "a in (b, c),!d",
            &[("a", "In", &["b", "c"]), ("d", "DoesNotExist", &[])],
        );
        check(
            "a,b!=c, e notin (f)",
            &[
                ("a", "Exists", &[]),
                ("b", "NotIn", &["c"]),
                ("e", "NotIn", &["f"]),
            ],
        );
        for wrong in ["", "a in b", "a in (b", "=b", "a b"] {
            assert!(parse(&literal(wrong)).is_err(), "{wrong}");
        }
    }

    fn literal(text: &str) -> LitStr {
        LitStr::new(text, Span::call_site())
    }
}
