//! `#[api]`: a kind is registered at link time, and its type translated.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DeriveInput, Error, Meta, Result};

use crate::item::{refused, translated};
use crate::list::{Arguments, text};
use crate::names::metas;
use crate::registration::conditions;

/// The type, and its registration.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let (item, problems) = match translated(item.clone(), &["CustomResource"], "api") {
        Ok(translated) => translated,
        Err(error) => return refused(item, &error),
    };
    let entry = entry(arguments, &item).unwrap_or_else(|error| error.to_compile_error());
    quote!(#item #problems #entry)
}

fn entry(arguments: TokenStream, item: &DeriveInput) -> Result<TokenStream> {
    let mut arguments = Arguments::parse(arguments, &["conversion"])?;
    let conversion = match arguments.text("conversion")? {
        None => quote!(None),
        Some(text) if text.value() == "webhook" => quote!(Webhook),
        Some(text) if text.value() == "none" => quote!(None),
        Some(text) => {
            return Err(Error::new_spanned(
                text,
                "`conversion` is `webhook` or `none`",
            ));
        }
    };
    let kube = metas(&item.attrs, "kube");
    let root = root(item, &kube)?;
    let definition = if has_schema(&kube) {
        quote!(::kubewright::manifests::definition::of::<#root>)
    } else {
        quote!(<#root as ::kubewright::kube::CustomResourceExt>::crd)
    };
    let conditions = conditions(&item.attrs);
    Ok(quote! {
        #(#conditions)*
        ::kubewright::__private::inventory::submit! {
            ::kubewright::registered::KindEntry {
                definition: #definition,
                conversion: ::kubewright::registered::Conversion::#conversion,
            }
        }
    })
}

/// The struct that kube's derive makes.
fn root(item: &DeriveInput, kube: &[Meta]) -> Result<Ident> {
    let find = |name: &str| {
        let found = kube.iter().find_map(|meta| match meta {
            Meta::NameValue(pair) if pair.path.is_ident(name) => Some(pair.value.clone()),
            _ => None,
        });
        found.map(text).transpose()
    };
    let name = match find("root")? {
        Some(root) => Some(root),
        None => find("kind")?,
    };
    let missing = || {
        Error::new_spanned(
            &item.ident,
            "`#[kube(group = \"..\", version = \"..\", kind = \"..\")]` is missing",
        )
    };
    let name = name.ok_or_else(missing)?;
    name.parse()
        .map_err(|_| Error::new_spanned(&name, "a kind is one word that begins with a capital"))
}

/// Whether kube's derive makes a schema of the type.
fn has_schema(kube: &[Meta]) -> bool {
    let own = kube.iter().find_map(|meta| match meta {
        Meta::NameValue(pair) if pair.path.is_ident("schema") => text(pair.value.clone()).ok(),
        _ => None,
    });
    own.is_none_or(|mode| mode.value() == "derived")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: TokenStream, item: TokenStream, expected: &str) {
        let item = syn::parse2(item).expect("a struct");
        let found = entry(arguments, &item)
            .map_or_else(|error| error.to_string(), |tokens| tokens.to_string());
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn the_kind_that_kube_makes_is_registered() {
        check(
            quote!(),
            quote! { #[kube(group = "g", version = "v1", kind = "A")] struct ASpec {} },
            "of :: < A >",
        );
        check(
            quote!(),
            quote! { #[kube(kind = "A", root = "B")] struct ASpec {} },
            "of :: < B >",
        );
        check(
            quote!(),
            quote! { #[kube(kind = "A", schema = "manual")] struct ASpec {} },
            "CustomResourceExt > :: crd",
        );
        check(
            quote!(conversion = "webhook"),
            quote! { #[kube(kind = "A")] struct ASpec {} },
            "Conversion :: Webhook",
        );
    }

    #[test]
    fn what_is_missing_is_reported() {
        check(
            quote!(),
            quote! { struct ASpec {} },
            "version = \"..\", kind = \"..\")]` is missing",
        );
        check(
            quote!(conversion = "magic"),
            quote! { #[kube(kind = "A")] struct ASpec {} },
            "`conversion` is `webhook` or `none`",
        );
        check(
            quote!(storage),
            quote! { #[kube(kind = "A")] struct ASpec {} },
            "unknown option `storage`",
        );
    }
}
