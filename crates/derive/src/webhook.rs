//! `#[webhook]`: an admission webhook that is registered at link time.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, LitStr, Result, Type};

use crate::hook::{Hook, Purpose};
use crate::list::Arguments;
use crate::permission::option;

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

/// The item, and the webhook beside it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let registered = register(arguments, item.clone());
    let registered = registered.unwrap_or_else(|error| error.to_compile_error());
    quote!(#item #registered)
}

fn register(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut arguments = Arguments::parse(arguments, KNOWN)?;
    let purpose = purpose(&mut arguments)?;
    let url = arguments.text("url")?;
    let hook = match Hook::parse(item, purpose) {
        // What is asked at another address can be anything here.
        Err(_) if url.is_some() => Hook::Declaration,
        parsed => parsed?,
    };
    let adapter = url.is_none().then(|| hook.adapter());
    let entry = entry(arguments, url, &hook, purpose)?;
    Ok(quote! {
        const _: () = {
            #adapter
            ::kubewright::__private::inventory::submit! { #entry }
        };
    })
}

fn entry(
    mut arguments: Arguments,
    url: Option<LitStr>,
    hook: &Hook,
    purpose: Purpose,
) -> Result<TokenStream> {
    let object = hook.object();
    let kind = match purpose {
        Purpose::Mutating => quote!(::kubewright::manifests::WebhookKind::Mutating),
        Purpose::Validating => quote!(::kubewright::manifests::WebhookKind::Validating),
    };
    let (name, path) = (arguments.text("name")?, arguments.text("path")?);
    check_address(name.as_ref(), path.as_ref(), url.as_ref(), object)?;
    let serve = if url.is_none() {
        hook.serve()
    } else {
        Hook::Declaration.serve()
    };
    let is_served = url.is_none();
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
    let verbs = if is_served { hook.verbs(verbs)? } else { verbs };
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

/// Whether it is known where the webhook answers, and under which name.
fn check_address(
    name: Option<&LitStr>,
    path: Option<&LitStr>,
    url: Option<&LitStr>,
    object: Option<&Type>,
) -> Result<()> {
    let wrong = |problem: &str| Err(Error::new(Span::call_site(), problem));
    if path.is_some() && url.is_some() {
        return wrong("one of `path` and `url` is wanted, not both");
    }
    match name {
        Some(name) => check_name(name)?,
        // What says of which type its objects are need not say the rest.
        None if object.is_some() => {}
        None => return wrong("`name = \"..\"` is missing"),
    }
    if object.is_none() && path.is_none() && url.is_none() {
        return wrong("one of `path` and `url` is wanted");
    }
    Ok(())
}

fn purpose(arguments: &mut Arguments) -> Result<Purpose> {
    match (arguments.flag("mutating")?, arguments.flag("validating")?) {
        (Some(_), None) => Ok(Purpose::Mutating),
        (None, Some(_)) => Ok(Purpose::Validating),
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
        let found = register(
            arguments,
            quote!(
                struct Elsewhere;
            ),
        );
        let found = found.map_err(|error| error.to_string());
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
