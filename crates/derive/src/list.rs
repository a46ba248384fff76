//! Arguments of attributes: `name = value` pairs, and lists as `"a;b"` or `["a", "b"]`.

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Meta, Result, Token};

/// The arguments of an attribute, each taken once.
pub(crate) struct Arguments {
    metas: Vec<Meta>,
    known: &'static [&'static str],
}

impl Arguments {
    /// Reads them. Names that are not known are errors that tell the known ones.
    pub(crate) fn parse(tokens: TokenStream, known: &'static [&'static str]) -> Result<Self> {
        let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let metas: Vec<Meta> = metas.into_iter().collect();
        let mut seen: Vec<String> = Vec::new();
        for meta in &metas {
            let name = path_text(meta.path());
            if !known.contains(&name.as_str()) {
                return Err(Error::new_spanned(meta.path(), unknown(&name, known)));
            }
            if seen.contains(&name) {
                let text = format!("`{name}` is given twice");
                return Err(Error::new_spanned(meta.path(), text));
            }
            seen.push(name);
        }
        Ok(Self { metas, known })
    }

    fn take(&mut self, name: &str) -> Option<Meta> {
        debug_assert!(self.known.contains(&name), "a name that is known");
        let at = self
            .metas
            .iter()
            .position(|meta| meta.path().is_ident(name));
        at.map(|at| self.metas.remove(at))
    }

    /// Whether a word stands there alone.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<Span>> {
        match self.take(name) {
            None => Ok(None),
            Some(Meta::Path(path)) => Ok(path.get_ident().map(syn::Ident::span)),
            Some(other) => {
                let text = format!("`{name}` stands alone, without a value");
                Err(Error::new_spanned(other, text))
            }
        }
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<LitStr>> {
        self.value(name)?.map(text).transpose()
    }

    /// A whole number.
    pub(crate) fn integer(&mut self, name: &str) -> Result<Option<syn::LitInt>> {
        let integer = |value| match value {
            Expr::Lit(ExprLit {
                lit: Lit::Int(value),
                ..
            }) => Ok(value),
            other => Err(Error::new_spanned(
                other,
                format!("`{name}` is a whole number"),
            )),
        };
        self.value(name)?.map(integer).transpose()
    }

    /// A list of texts, empty when it is not there.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<LitStr>> {
        self.value(name)?.map_or(Ok(Vec::new()), list)
    }

    /// One text as it is, or an array of them, empty when it is not there: for texts that may have semicolons.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<LitStr>> {
        match self.value(name)? {
            None => Ok(Vec::new()),
            Some(Expr::Array(array)) => array.elems.into_iter().map(text).collect(),
            Some(one) => Ok(vec![text(one)?]),
        }
    }

    fn value(&mut self, name: &str) -> Result<Option<Expr>> {
        match self.take(name) {
            None => Ok(None),
            Some(Meta::NameValue(pair)) => Ok(Some(pair.value)),
            Some(other) => Err(Error::new_spanned(other, format!("write `{name} = ..`"))),
        }
    }
}

/// What to say about a name that is not known.
pub(crate) fn unknown(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known);
    let hint = near.map_or_else(
        || ".".to_owned(),
        |near| format!("; did you mean `{near}`?"),
    );
    format!(
        "unknown option `{name}`{hint} Known are: {}",
        known.join(", ")
    )
}

/// The word that a typing error most likely meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|known| (distance(word, known), *known));
    let near = near.filter(|(distance, known)| *distance <= 2 && *distance < known.len());
    near.min().map(|(_, known)| known)
}

/// How many letters have to be added, removed or replaced.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

/// A path as text, `a::b`.
pub(crate) fn path_text(path: &syn::Path) -> String {
    let segments = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string());
    segments.collect::<Vec<_>>().join("::")
}

/// A text, or an error that says so.
pub(crate) fn text(value: Expr) -> Result<LitStr> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(text),
        other => Err(Error::new_spanned(other, "a text in quotes is wanted here")),
    }
}

fn list(value: Expr) -> Result<Vec<LitStr>> {
    match value {
        Expr::Array(array) => array.elems.into_iter().map(text).collect(),
        other => {
            let whole = text(other)?;
            let parts = whole.value();
            let parts = parts.split(';').map(str::trim);
            Ok(parts.map(|part| LitStr::new(part, whole.span())).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn lists_are_texts_with_semicolons_or_arrays() {
        let check = |tokens| {
            let mut arguments = Arguments::parse(tokens, &["verbs"]).expect("arguments");
            let list = arguments.list("verbs").expect("a list");
            assert_eq!(
                list.iter().map(LitStr::value).collect::<Vec<_>>(),
                ["get", "list"]
            );
        };
        check(quote!(verbs = "get;list"));
        check(quote!(verbs = "get; list"));
        check(quote!(verbs = ["get", "list"]));
    }

    #[test]
    fn a_wrong_argument_is_named_and_the_right_ones_listed() {
        let check = |tokens, expected: &str| {
            let error = Arguments::parse(tokens, &["verbs", "groups"])
                .err()
                .expect("an error");
            assert_eq!(error.to_string(), expected);
        };
        check(
            quote!(verb = "get"),
            "unknown option `verb`; did you mean `verbs`? Known are: verbs, groups",
        );
        check(
            quote!(maxlen = 3),
            "unknown option `maxlen`. Known are: verbs, groups",
        );
        check(quote!(verbs = "a", verbs = "b"), "`verbs` is given twice");
    }
}
