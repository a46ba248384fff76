//! Rules in CEL: those that are written, and those that are meant by `one_of` and the like.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::{Error, LitStr, Result, Token};

use super::grammar::Value;
use crate::list::Arguments;
use crate::names::in_cel;
use crate::permission::option;

const REASONS: &[&str] = &[
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
];
const KNOWN: &[&str] = &[
    "message",
    "message_expression",
    "reason",
    "field_path",
    "optional_old_self",
];

/// `rule("self > 1", message = "..")` as a call.
pub(super) fn parse(name: &Ident, value: Value) -> Result<TokenStream> {
    let wrong = || {
        Error::new(
            name.span(),
            "write `rule(\"CEL expression\", message = \"..\")`",
        )
    };
    let Value::List(tokens) = value else {
        return Err(wrong());
    };
    let split = |input: syn::parse::ParseStream<'_>| {
        let rule: LitStr = input.parse().map_err(|_| wrong())?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok((rule, input.parse::<TokenStream>()?))
    };
    let (rule, rest) = split.parse2(tokens)?;
    if rule.value().trim().is_empty() {
        return Err(Error::new_spanned(rule, "a rule is not empty"));
    }
    let mut arguments = Arguments::parse(rest, KNOWN)?;
    let message = arguments.text("message")?;
    if let Some(message) = &message
        && (message.value().contains('\n') || message.value().is_empty())
    {
        return Err(Error::new_spanned(message, "a message is one line"));
    }
    let message = option(message);
    let expression = option(arguments.text("message_expression")?);
    let reason = option(reason(&mut arguments)?);
    let path = option(field_path(&mut arguments)?);
    let optional = arguments.flag("optional_old_self")?.is_some();
    Ok(quote! {
        .rule(::kubewright::__private::Rule {
            rule: #rule, message: #message, message_expression: #expression, reason: #reason, field_path: #path,
            optional_old_self: #optional,
        })
    })
}

fn reason(arguments: &mut Arguments) -> Result<Option<LitStr>> {
    let reason = arguments.text("reason")?;
    match reason {
        Some(reason) if !REASONS.contains(&reason.value().as_str()) => {
            let text = format!(
                "unknown reason `{}`. Known are: {}",
                reason.value(),
                REASONS.join(", ")
            );
            Err(Error::new_spanned(reason, text))
        }
        other => Ok(other),
    }
}

fn field_path(arguments: &mut Arguments) -> Result<Option<LitStr>> {
    let path = arguments.text("field_path")?;
    match path {
        Some(path) if !path.value().starts_with(['.', '[']) => Err(Error::new_spanned(
            path,
            "a path begins with a dot: `.spec.size`",
        )),
        other => Ok(other),
    }
}

/// A rule with a message as a call.
pub(super) fn call(rule: &str, message: &str) -> TokenStream {
    quote! {
        .rule(::kubewright::__private::Rule {
            rule: #rule, message: ::core::option::Option::Some(#message),
            message_expression: ::core::option::Option::None, reason: ::core::option::Option::None,
            field_path: ::core::option::Option::None, optional_old_self: false,
        })
    }
}

/// How many of a group are to be set: exactly one, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Exactly,
    AtMost,
    AtLeast,
}

/// Fields of which so many are to be set.
#[derive(Debug)]
pub(crate) struct Groups {
    /// The fields, as they are called in Rust.
    pub(crate) fields: Vec<Ident>,
    count: Count,
}

impl Groups {
    pub(super) fn parse(name: Ident, value: Value, count: Count) -> Result<Self> {
        let mut fields = Vec::new();
        for expression in super::grammar::expressions(&name, value)? {
            let text = "a field's name is wanted";
            let ident: Ident = syn::parse2(expression.to_token_stream())
                .map_err(|_| Error::new_spanned(&expression, text))?;
            fields.push(ident);
        }
        if fields.len() < 2 {
            Err(Error::new(
                name.span(),
                format!("`{name}` is about two fields at least"),
            ))
        } else {
            Ok(Self { fields, count })
        }
    }

    /// The rule and its message, given the fields' names in JSON. Texts are those of controller-gen.
    pub(crate) fn rule(&self, names: &[String]) -> (String, String) {
        let has = |name: &String| format!("has(self.{})", in_cel(name));
        let sum = || {
            let terms = names.iter().map(|name| format!("({}?1:0)", has(name)));
            terms.collect::<Vec<_>>().join("+")
        };
        let all = names.join(" ");
        match self.count {
            Count::Exactly => (
                format!("{} == 1", sum()),
                format!("exactly one of the fields in [{all}] must be set"),
            ),
            Count::AtMost => (
                format!("{} <= 1", sum()),
                format!("at most one of the fields in [{all}] may be set"),
            ),
            Count::AtLeast => (
                names.iter().map(has).collect::<Vec<_>>().join("||"),
                format!("at least one of the fields in [{all}] must be set"),
            ),
        }
    }
}
