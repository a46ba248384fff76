//! `#[rbac]`: a permission that is registered at link time.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, LitStr, Result};

use crate::list::{Arguments, nearest};
use crate::registration::beside;

const KNOWN: &[&str] = &[
    "groups",
    "resources",
    "resource_names",
    "urls",
    "verbs",
    "namespace",
    "role",
];

/// Verbs of the API server. Others are possible: an aggregated API may have its own.
const VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
    "attest",
    "proxy",
    "*",
];

/// The item, and the permission beside it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    beside(item, entry(arguments))
}

fn entry(arguments: TokenStream) -> Result<TokenStream> {
    let mut arguments = Arguments::parse(arguments, KNOWN)?;
    let verbs = arguments.list("verbs")?;
    let (groups, resources) = (arguments.list("groups")?, arguments.list("resources")?);
    let (names, urls) = (arguments.list("resource_names")?, arguments.list("urls")?);
    check_verbs(&verbs)?;
    check_subjects(&groups, &resources, &names, &urls)?;
    let namespace = option(arguments.text("namespace")?);
    let role = option(arguments.text("role")?);
    Ok(quote! {
        ::kubewright::registered::RuleEntry {
            groups: &[#(#groups),*],
            resources: &[#(#resources),*],
            resource_names: &[#(#names),*],
            urls: &[#(#urls),*],
            verbs: &[#(#verbs),*],
            namespace: #namespace,
            role: #role,
        }
    })
}

/// An optional text as an expression.
pub(crate) fn option(text: Option<LitStr>) -> TokenStream {
    match text {
        Some(text) => quote!(::core::option::Option::Some(#text)),
        None => quote!(::core::option::Option::None),
    }
}

fn check_verbs(verbs: &[LitStr]) -> Result<()> {
    if verbs.is_empty() {
        return Err(Error::new(
            Span::call_site(),
            "`verbs = \"get;list\"` is missing",
        ));
    }
    for verb in verbs {
        let value = verb.value();
        if VERBS.contains(&value.as_str()) {
            continue;
        }
        if value.contains([',', ' ']) {
            let parts = value.split([',', ' ']).filter(|part| !part.is_empty());
            let parts: Vec<&str> = parts.collect();
            return Err(Error::new_spanned(
                verb,
                format!(
                    "`{value}` is not a verb: separate verbs with `;`, as in \"{}\"",
                    parts.join(";")
                ),
            ));
        }
        if value.is_empty() || !value.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
            return Err(Error::new_spanned(
                verb,
                format!("`{value}` is not a verb: verbs are lower case words"),
            ));
        }
        if let Some(near) = nearest(&value, VERBS) {
            return Err(Error::new_spanned(
                verb,
                format!("unknown verb `{value}`; did you mean `{near}`?"),
            ));
        }
    }
    Ok(())
}

fn check_subjects(
    groups: &[LitStr],
    resources: &[LitStr],
    names: &[LitStr],
    urls: &[LitStr],
) -> Result<()> {
    let here = |text| Err(Error::new(Span::call_site(), text));
    match (resources.is_empty(), urls.is_empty()) {
        (true, true) => here("either `resources` or `urls` is missing"),
        (false, false) => here("`resources` and `urls` are two permissions: write two attributes"),
        (false, true) if groups.is_empty() => {
            here("`groups` is missing; the core group is `groups = \"\"`")
        }
        (true, false) if !groups.is_empty() || !names.is_empty() => {
            here("`urls` have neither `groups` nor `resource_names`")
        }
        _ => check_texts(resources, urls),
    }
}

fn check_texts(resources: &[LitStr], urls: &[LitStr]) -> Result<()> {
    for resource in resources {
        let value = resource.value();
        if value.is_empty()
            || value
                .chars()
                .any(|c| c.is_ascii_uppercase() || c.is_whitespace())
        {
            let text = format!(
                "`{value}` is not a resource: write its plural in lower case, as in `deployments/status`"
            );
            return Err(Error::new_spanned(resource, text));
        }
    }
    for url in urls {
        let value = url.value();
        if !value.starts_with('/') && value != "*" {
            return Err(Error::new_spanned(
                url,
                format!("`{value}` is not a path: it begins with `/`"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: TokenStream, expected: &str) {
        let found = entry(arguments).map_err(|error| error.to_string());
        assert_eq!(
            found.map(|_| String::new()).unwrap_or_else(|error| error),
            expected
        );
    }

    #[test]
    fn sound_permissions_are_taken() {
        check(
            quote!(groups = "", resources = "pods/log", verbs = "get"),
            "",
        );
        check(
            quote!(
                groups = "apps;batch",
                resources = "a;b",
                verbs = ["get", "list"],
                namespace = "n",
                role = "r"
            ),
            "",
        );
        check(quote!(urls = "/metrics", verbs = "get"), "");
        check(
            quote!(groups = "x", resources = "y", verbs = "frobnicate"),
            "",
        );
    }

    #[test]
    fn unsound_permissions_are_errors_that_say_why() {
        check(
            quote!(groups = "", resources = "pods", verbs = "gt"),
            "unknown verb `gt`; did you mean `get`?",
        );
        check(
            quote!(groups = "", resources = "pods", verbs = "Get"),
            "`Get` is not a verb: verbs are lower case words",
        );
        check(
            quote!(groups = "", resources = "pods", verbs = "get, list"),
            "`get, list` is not a verb: separate verbs with `;`, as in \"get;list\"",
        );
        check(
            quote!(groups = "", resources = "pods"),
            "`verbs = \"get;list\"` is missing",
        );
        check(
            quote!(verbs = "get"),
            "either `resources` or `urls` is missing",
        );
        check(
            quote!(resources = "pods", verbs = "get"),
            "`groups` is missing; the core group is `groups = \"\"`",
        );
        check(
            quote!(urls = "metrics", verbs = "get"),
            "`metrics` is not a path: it begins with `/`",
        );
        check(
            quote!(groups = "", resources = "Pod", verbs = "get"),
            "`Pod` is not a resource: write its plural in lower case, as in `deployments/status`",
        );
        check(
            quote!(group = "", verbs = "get"),
            "unknown option `group`; did you mean `groups`? Known are: groups, resources, resource_names, urls, verbs, namespace, role",
        );
    }
}
