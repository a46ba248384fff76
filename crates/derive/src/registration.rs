//! `#[controller]`: a function is registered at link time.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, FnArg, GenericArgument, ItemFn, PathArguments, Result, ReturnType, Type};

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
    let wanted = "`controller` stands on a function that returns a `Controller`, and takes nothing or `Option<&T>` for each state that it is given";
    let function: ItemFn =
        syn::parse2(item.clone()).map_err(|_| Error::new_spanned(&item, wanted))?;
    let signature = &function.sig;
    let plain = signature.generics.params.is_empty()
        && signature.asyncness.is_none()
        && matches!(signature.output, ReturnType::Type(..));
    let states: Option<Vec<&Type>> = signature.inputs.iter().map(state).collect();
    let states = states.filter(|_| plain);
    let states = states.ok_or_else(|| Error::new_spanned(signature, wanted))?;
    let name = &signature.ident;
    let attributes = conditions(&function.attrs);
    Ok(quote! {
        #(#attributes)*
        ::kubewright::__private::inventory::submit! {
            ::kubewright::registered::ControllerEntry::new(|__given| {
                ::kubewright::registered::RegisteredController::from(
                    #name(#(::core::result::Result::ok(__given.get::<#states>())),*)
                )
            })
        }
    })
}

/// The type of a state: `T` of a parameter `Option<&T>`.
fn state(input: &FnArg) -> Option<&Type> {
    let FnArg::Typed(input) = input else {
        return None;
    };
    let Type::Path(option) = &*input.ty else {
        return None;
    };
    let last = option
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(Type::Reference(state)) if state.mutability.is_none() => {
            Some(&state.elem)
        }
        _ => None,
    }
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
                fn a(flags: Option<&Flags>, channel: Option<&Channel<Zone>>) -> Controller<Zone> {
                    x()
                }
            ),
            true,
        );
        check(
            quote!(
                fn a(flags: Option<Flags>) -> Controller {
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
