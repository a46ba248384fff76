//! The tokens of `#[k8s(..)]`: words, each alone, with `= value` or with `(..)`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Result, Token, UnOp, parenthesized};

use super::table::Argument;
use crate::names::Case;

/// One option.
pub(super) struct Item {
    pub(super) name: Ident,
    pub(super) value: Value,
}

/// What follows the word.
pub(super) enum Value {
    None,
    Expression(Expr),
    List(TokenStream),
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = Ident::parse_any(input)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Value::Expression(input.parse()?)
        } else if input.peek(syn::token::Paren) {
            let inner;
            parenthesized!(inner in input);
            Value::List(inner.parse()?)
        } else {
            Value::None
        };
        Ok(Self { name, value })
    }
}

/// The options of an attribute.
pub(super) fn parse(attribute: &Attribute) -> Result<Punctuated<Item, Token![,]>> {
    attribute.parse_args_with(Punctuated::parse_terminated)
}

/// The options inside `items(..)`.
pub(super) fn nested(name: &Ident, value: Value) -> Result<Punctuated<Item, Token![,]>> {
    match value {
        Value::List(tokens) => Punctuated::parse_terminated.parse2(tokens),
        _ => Err(Error::new(name.span(), format!("write `{name}(..)`"))),
    }
}

/// That nothing follows.
pub(super) fn nothing(name: &Ident, value: &Value) -> Result<()> {
    match value {
        Value::None => Ok(()),
        _ => Err(Error::new(
            name.span(),
            format!("`{name}` stands alone, without a value"),
        )),
    }
}

/// What follows `=`.
pub(super) fn expression(name: &Ident, value: Value) -> Result<Expr> {
    match value {
        Value::Expression(expression) => Ok(expression),
        _ => Err(Error::new(name.span(), format!("write `{name} = ..`"))),
    }
}

/// What is in `(..)`.
pub(super) fn expressions(name: &Ident, value: Value) -> Result<Vec<Expr>> {
    let wrong = || Error::new(name.span(), format!("write `{name}(a, b)`"));
    let Value::List(tokens) = value else {
        return Err(wrong());
    };
    let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens)?;
    if parsed.is_empty() {
        Err(wrong())
    } else {
        Ok(parsed.into_iter().collect())
    }
}

/// A literal of the sort that is wanted. A path is taken as well: a constant.
pub(super) fn literal(name: &Ident, value: Value, wanted: &Argument) -> Result<TokenStream> {
    let expression = expression(name, value)?;
    let sound = match (&expression, wanted) {
        (Expr::Path(_), _) => true,
        (Expr::Lit(ExprLit { lit, .. }), Argument::Text) => matches!(lit, Lit::Str(_)),
        (Expr::Lit(ExprLit { lit, .. }), Argument::Count) => matches!(lit, Lit::Int(_)),
        (Expr::Lit(ExprLit { lit, .. }), _) => matches!(lit, Lit::Int(_) | Lit::Float(_)),
        (Expr::Unary(unary), Argument::Number) => matches!(unary.op, UnOp::Neg(_)),
        _ => false,
    };
    if sound {
        return Ok(typed(&expression, wanted));
    }
    let what = match wanted {
        Argument::Text => "a text in quotes",
        Argument::Count => "a whole number that is not negative",
        _ => "a number",
    };
    Err(Error::new_spanned(
        &expression,
        format!("`{name}` wants {what}"),
    ))
}

/// A whole number is written as one, whatever Rust takes a bare literal for.
fn typed(expression: &Expr, wanted: &Argument) -> TokenStream {
    match wanted {
        Argument::Count => quote!({ let count: u64 = #expression; count }),
        _ => expression.to_token_stream(),
    }
}

/// Whether an expression is this word alone.
pub(super) fn is_word(expression: &Expr, word: &str) -> bool {
    matches!(expression, Expr::Path(path) if path.path.is_ident(word))
}

/// A key of a list: a field's name in Rust, or its name in JSON in quotes.
pub(super) fn key(expression: &Expr) -> Result<LitStr> {
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(text.clone()),
        Expr::Path(path) => {
            let ident = path.path.get_ident();
            let ident =
                ident.ok_or_else(|| Error::new_spanned(expression, "a field's name is wanted"))?;
            let name = ident.unraw().to_string();
            Ok(LitStr::new(&Case::Camel.apply(&name), ident.span()))
        }
        other => Err(Error::new_spanned(other, "a field's name is wanted")),
    }
}
