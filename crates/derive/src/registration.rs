//! `#[controller]`: a function is registered at link time.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn, Result, ReturnType};

/// The function, and its registration.
pub(crate) fn controller(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let registered = register(arguments, item.clone());
    let registered = registered.unwrap_or_else(|error| error.to_compile_error());
    quote!(#item #registered)
}

fn register(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`controller` has no options"));
    }
    let wanted = "`controller` stands on a function that takes nothing and returns a `Controller`";
    let function: ItemFn =
        syn::parse2(item.clone()).map_err(|_| Error::new_spanned(&item, wanted))?;
    let signature = &function.sig;
    let plain = signature.inputs.is_empty()
        && signature.generics.params.is_empty()
        && signature.asyncness.is_none()
        && matches!(signature.output, ReturnType::Type(..));
    if !plain {
        return Err(Error::new_spanned(signature, wanted));
    }
    let name = &signature.ident;
    let attributes = conditions(&function.attrs);
    Ok(quote! {
        #(#attributes)*
        ::kubewright::__private::inventory::submit! {
            ::kubewright::registered::ControllerEntry::new(#name)
        }
    })
}

/// What is compiled under a condition is registered under the same.
pub(crate) fn conditions(attributes: &[syn::Attribute]) -> Vec<&syn::Attribute> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .collect()
}

/// An item, with something registered beside it. Methods have no place beside them.
pub(crate) fn beside(item: TokenStream, entry: Result<TokenStream>) -> TokenStream {
    let entry = entry.and_then(|entry| {
        let method = syn::parse2::<ItemFn>(item.clone());
        if method.is_ok_and(|method| method.sig.receiver().is_some()) {
            Err(Error::new_spanned(
                &item,
                "write this on the `impl` or another item outside of it: a method has no place beside it",
            ))
        } else {
            Ok(quote!(::kubewright::__private::inventory::submit! { #entry }))
        }
    });
    let entry = entry.unwrap_or_else(|error| error.to_compile_error());
    quote!(#item #entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_make_a_controller_are_registered() {
        let check = |item: TokenStream, expected: bool| {
            assert_eq!(register(quote!(), item.clone()).is_ok(), expected, "{item}");
        };
        check(
            quote!(
                fn a() -> Controller {
                    x()
                }
            ),
            true,
        );
        check(
            quote!(
                fn a(b: u8) -> Controller {
                    x()
                }
            ),
            false,
        );
        check(
            quote!(
                async fn a() -> Controller {
                    x()
                }
            ),
            false,
        );
        check(
            quote!(
                fn a() {}
            ),
            false,
        );
        check(
            quote!(
                struct A;
            ),
            false,
        );
    }
}
