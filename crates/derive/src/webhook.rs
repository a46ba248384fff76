//! `#[webhook]`: an admission webhook that is registered at link time.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, FnArg, ItemFn, LitStr, Result, Signature, Type};

use crate::list::Arguments;
use crate::permission::option;
use crate::registration::beside;

const KNOWN: &[&str] = &[
    "mutating",
    "validating",
    "name",
    "path",
    "url",
    "groups",
    "versions",
    "resources",
    "verbs",
    "failure_policy",
    "match_policy",
    "side_effects",
    "timeout_seconds",
    "reinvocation_policy",
    "admission_review_versions",
    "service_name",
    "service_namespace",
    "service_port",
    "namespace_selector",
    "object_selector",
    "match_conditions",
];

/// The item, and the webhook beside it. A function is what answers; any other item only says that there is a webhook.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = syn::parse2::<ItemFn>(item.clone()).ok();
    let function = function.as_ref().map(|function| &function.sig);
    beside(item, entry(arguments, function))
}

fn entry(arguments: TokenStream, function: Option<&Signature>) -> Result<TokenStream> {
    let mut arguments = Arguments::parse(arguments, KNOWN)?;
    let (kind, adds) = kind(&mut arguments)?;
    let object = function.and_then(object_type);
    let name = arguments.text("name")?;
    if let Some(name) = &name {
        check_name(name)?;
    }
    let (path, url) = (arguments.text("path")?, arguments.text("url")?);
    if path.is_some() && url.is_some() {
        let problem = "one of `path` and `url` is wanted, not both";
        return Err(Error::new(Span::call_site(), problem));
    }
    // What says of which type its objects are need not say the rest.
    if object.is_none() {
        let missing = |problem: &str| Err(Error::new(Span::call_site(), problem));
        if name.is_none() {
            return missing("`name = \"..\"` is missing");
        }
        if path.is_none() && url.is_none() {
            return missing("one of `path` and `url` is wanted");
        }
    }
    let serve = match (function, &url) {
        (Some(function), None) => {
            let function = &function.ident;
            quote!(::core::option::Option::Some(|hooks, path| hooks.#adds(path, #function)))
        }
        _ => quote!(::core::option::Option::None),
    };
    let (name, path, url) = (option(name), option(path), option(url));
    let groups = arguments.list("groups")?;
    let versions = listed(&mut arguments, "versions", object)?;
    let resources = listed(&mut arguments, "resources", object)?;
    let verbs = listed(&mut arguments, "verbs", object)?;
    one_of_each(
        "verb",
        &verbs,
        &["create", "update", "delete", "connect", "*"],
    )?;
    let failure = choice(&mut arguments, "failure_policy", &["Fail", "Ignore"])?;
    let matching = choice(&mut arguments, "match_policy", &["Exact", "Equivalent"])?;
    let effects = choice(&mut arguments, "side_effects", &["None", "NoneOnDryRun"])?;
    let reinvocation = choice(
        &mut arguments,
        "reinvocation_policy",
        &["Never", "IfNeeded"],
    )?;
    let reviews = arguments.list("admission_review_versions")?;
    let timeout = seconds(&mut arguments)?;
    let service_name = option(arguments.text("service_name")?);
    let service_namespace = option(arguments.text("service_namespace")?);
    let service_port = number(arguments.integer("service_port")?);
    let namespaces = crate::selector::expression(arguments.text("namespace_selector")?)?;
    let objects = crate::selector::expression(arguments.text("object_selector")?)?;
    let conditions = match_conditions(&mut arguments)?;
    let of = match object {
        Some(object) => quote!(
            ::core::option::Option::Some(::kubewright::registered::ObjectNames::of::<#object>)
        ),
        None => quote!(::core::option::Option::None),
    };
    Ok(quote! {
        ::kubewright::registered::WebhookEntry {
            kind: #kind, name: #name, path: #path, url: #url,
            groups: &[#(#groups),*], versions: &[#(#versions),*], resources: &[#(#resources),*], verbs: &[#(#verbs),*],
            failure_policy: #failure, match_policy: #matching, side_effects: #effects, timeout_seconds: #timeout,
            reinvocation_policy: #reinvocation, admission_review_versions: &[#(#reviews),*],
            service_name: #service_name, service_namespace: #service_namespace, service_port: #service_port,
            namespace_selector: #namespaces, object_selector: #objects,
            match_conditions: &[#(#conditions),*], serve: #serve, object: #of,
        }
    })
}

/// The type of the objects that a function is about: that of its first parameter, `&K` or `&mut K`.
fn object_type(signature: &Signature) -> Option<&Type> {
    match signature.inputs.first()? {
        FnArg::Typed(first) => match &*first.ty {
            Type::Reference(reference) => Some(&reference.elem),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

/// The kind, and what adds a function of it to those that are served.
fn kind(arguments: &mut Arguments) -> Result<(TokenStream, TokenStream)> {
    match (arguments.flag("mutating")?, arguments.flag("validating")?) {
        (Some(_), None) => Ok((
            quote!(::kubewright::manifests::WebhookKind::Mutating),
            quote!(defaulting),
        )),
        (None, Some(_)) => Ok((
            quote!(::kubewright::manifests::WebhookKind::Validating),
            quote!(validating),
        )),
        (Some(span), Some(_)) => Err(Error::new(
            span,
            "it either defaults objects or validates them: write two attributes",
        )),
        (None, None) => Err(Error::new(
            Span::call_site(),
            "`mutating` or `validating` is missing",
        )),
    }
}

fn check_name(name: &LitStr) -> Result<()> {
    let value = name.value();
    let sound = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if value.split('.').count() >= 3 && value.split('.').all(sound) {
        Ok(())
    } else {
        Err(Error::new_spanned(
            name,
            "the name is a domain name with at least three parts, such as `vguestbook.kb.io`",
        ))
    }
}

/// A list that has to be there, unless the type of the objects says what it would be.
fn listed(arguments: &mut Arguments, name: &str, object: Option<&Type>) -> Result<Vec<LitStr>> {
    let list = arguments.list(name)?;
    if list.is_empty() && object.is_none() {
        Err(Error::new(
            Span::call_site(),
            format!("`{name} = \"..\"` is missing"),
        ))
    } else {
        Ok(list)
    }
}

/// Conditions in CEL, each as `name: expression`: its name is what servers report when it fails.
fn match_conditions(arguments: &mut Arguments) -> Result<Vec<TokenStream>> {
    let mut names: Vec<String> = Vec::new();
    let mut conditions = Vec::new();
    for text in arguments.texts("match_conditions")? {
        let whole = text.value();
        let parts = whole.split_once(':').unwrap_or_default();
        let (name, expression) = (parts.0.trim(), parts.1.trim());
        if !is_qualified_name(name) || expression.is_empty() {
            let problem = "a condition is a name and an expression, such as `not-a-node: !('system:nodes' in request.userInfo.groups)`";
            return Err(Error::new_spanned(text, problem));
        }
        if names.iter().any(|other| other == name) {
            let problem = format!("two conditions are called `{name}`");
            return Err(Error::new_spanned(text, problem));
        }
        conditions.push(quote!((#name, #expression)));
        names.push(name.to_owned());
    }
    Ok(conditions)
}

/// Whether a text is a name as labels have them, such as `not-a-node` or `my.domain/not-a-node`.
fn is_qualified_name(text: &str) -> bool {
    let name = text.split_once('/').map_or(text, |(_, name)| name);
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| edge(c) || "-_.".contains(c);
    name.len() <= 63 && name.starts_with(edge) && name.ends_with(edge) && name.chars().all(inside)
}

fn one_of_each(what: &str, texts: &[LitStr], known: &[&str]) -> Result<()> {
    match texts
        .iter()
        .find(|text| !known.contains(&text.value().as_str()))
    {
        None => Ok(()),
        Some(text) => {
            let problem = format!(
                "unknown {what} `{}`. Known are: {}",
                text.value(),
                known.join(", ")
            );
            Err(Error::new_spanned(text, problem))
        }
    }
}

fn choice(arguments: &mut Arguments, name: &str, known: &[&str]) -> Result<TokenStream> {
    let text = arguments.text(name)?;
    one_of_each(name, text.as_slice(), known)?;
    Ok(option(text))
}

fn seconds(arguments: &mut Arguments) -> Result<TokenStream> {
    let literal = arguments.integer("timeout_seconds")?;
    if let Some(literal) = &literal
        && !literal
            .base10_parse::<i32>()
            .is_ok_and(|seconds| (1..=30).contains(&seconds))
    {
        return Err(Error::new_spanned(
            literal,
            "a webhook may take 1 to 30 seconds",
        ));
    }
    Ok(number(literal))
}

fn number(literal: Option<syn::LitInt>) -> TokenStream {
    match literal {
        Some(literal) => quote!(::core::option::Option::Some(#literal)),
        None => quote!(::core::option::Option::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(extra: TokenStream, expected: &str) {
        let arguments = quote!(groups = "g", versions = "v1", resources = "r", #extra);
        let found = entry(arguments, None).map_err(|error| error.to_string());
        assert_eq!(
            found.map(|_| String::new()).unwrap_or_else(|error| error),
            expected
        );
    }

    #[test]
    fn wrong_webhooks_are_errors_that_say_why() {
        check(
            quote!(
                validating,
                name = "a.b.c",
                path = "/v",
                verbs = "create;update"
            ),
            "",
        );
        check(
            quote!(
                mutating,
                name = "a.b.c",
                url = "https://x/y",
                verbs = "*",
                timeout_seconds = 10
            ),
            "",
        );
        check(
            quote!(name = "a.b.c", path = "/v", verbs = "create"),
            "`mutating` or `validating` is missing",
        );
        check(
            quote!(mutating, name = "a.b", path = "/v", verbs = "create"),
            "the name is a domain name with at least three parts, such as `vguestbook.kb.io`",
        );
        check(
            quote!(mutating, name = "a.b.c", verbs = "create"),
            "one of `path` and `url` is wanted",
        );
        check(
            quote!(mutating, name = "a.b.c", path = "/v", verbs = "get"),
            "unknown verb `get`. Known are: create, update, delete, connect, *",
        );
        check(
            quote!(
                mutating,
                name = "a.b.c",
                path = "/v",
                verbs = "create",
                failure_policy = "fail"
            ),
            "unknown failure_policy `fail`. Known are: Fail, Ignore",
        );
        check(
            quote!(
                mutating,
                name = "a.b.c",
                path = "/v",
                verbs = "create",
                timeout_seconds = 31
            ),
            "a webhook may take 1 to 30 seconds",
        );
    }

    #[test]
    fn conditions_have_a_name_and_an_expression() {
        let wrong = "a condition is a name and an expression, such as `not-a-node: !('system:nodes' in request.userInfo.groups)`";
        let check = |conditions: TokenStream, expected: &str| {
            let hook = quote!(validating, name = "a.b.c", path = "/v", verbs = "create");
            check(quote!(#hook, match_conditions = #conditions), expected);
        };
        check(quote!("no-leases: request.resource.group != 'x'; y"), "");
        check(
            quote!(["a: true", "my.domain/b: object.spec.a ? x : y"]),
            "",
        );
        for text in ["true", "a:", ": true", "a b: true", "-a: true"] {
            check(quote!(#text), wrong);
        }
        check(
            quote!(["a: true", "a: false"]),
            "two conditions are called `a`",
        );
    }
}
