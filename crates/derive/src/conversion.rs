//! `#[conversion]`: a version that is converted to and from the hub, registered at link time.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, GenericArgument, ItemImpl, PathArguments, Result, Type};

use crate::registration::beside;

/// Where API servers ask for conversions, as controller-runtime has it.
const PATH: &str = "/convert";

/// The `impl`, and its registration.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    beside(item.clone(), entry(arguments, item))
}

fn entry(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`conversion` has no options"));
    }
    let wanted = "`conversion` stands on an `impl Spoke<Hub> for Version`";
    let implementation: ItemImpl =
        syn::parse2(item.clone()).map_err(|_| Error::new_spanned(&item, wanted))?;
    let hub = hub(&implementation).ok_or_else(|| Error::new_spanned(&item, wanted))?;
    let spoke = &implementation.self_ty;
    Ok(quote! {
        ::kubewright::registered::ConversionEntry::new(|hooks| {
            let converter = ::kubewright::runtime::webhook::Converter::<#hub>::hub();
            hooks.converting(#PATH, converter.spoke::<#spoke>())
        })
    })
}

/// The one type that the trait is about.
fn hub(implementation: &ItemImpl) -> Option<&Type> {
    let (_, path, _) = implementation.trait_.as_ref()?;
    let last = path.segments.last().filter(|last| last.ident == "Spoke")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(hub)) if arguments.args.len() == 1 => Some(hub),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spokes_are_registered() {
        let check = |item: TokenStream, expected: bool| {
            assert_eq!(entry(quote!(), item.clone()).is_ok(), expected, "{item}");
        };
        check(quote!(impl Spoke<v1::Job> for Job {}), true);
        check(
            quote!(impl kubewright::webhook::Spoke<Job> for v2::Job {}),
            true,
        );
        check(quote!(impl Spoke for Job {}), false);
        check(quote!(impl From<Job> for Job {}), false);
        check(quote!(impl Job {}), false);
        check(
            quote!(
                struct Job;
            ),
            false,
        );
        assert!(entry(quote!(x), quote!(impl Spoke<Job> for v2::Job {})).is_err());
    }
}
