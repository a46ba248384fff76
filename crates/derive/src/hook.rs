//! What answers a registered webhook: a function, or an `impl` of `Validating` or `Defaulting`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, FnArg, GenericArgument, Ident, ImplItem, ItemFn, ItemImpl, LitStr, PathArguments,
    PathSegment, Result, ReturnType, Signature, Type,
};

/// What a webhook does with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Mutating,
    Validating,
}

/// What an attribute stands on.
pub(crate) enum Hook {
    Function(Box<Function>),
    Implementation(Box<Implementation>),
    /// Only says that there is a webhook.
    Declaration,
}

/// A function that answers.
pub(crate) struct Function {
    name: Ident,
    object: Type,
    purpose: Purpose,
    takes_old: bool,
    takes_request: bool,
    is_async: bool,
    returns: bool,
}

/// An `impl Validating<K>` or `impl Defaulting<K>` of a type that has a default.
pub(crate) struct Implementation {
    holder: Type,
    object: Type,
    purpose: Purpose,
    methods: Vec<Ident>,
}

const VERBS: [&str; 3] = ["create", "update", "delete"];

impl Hook {
    pub(crate) fn parse(item: TokenStream, purpose: Purpose) -> Result<Self> {
        if let Ok(function) = syn::parse2::<ItemFn>(item.clone()) {
            let function = Function::parse(&function.sig, purpose)?;
            return Ok(Self::Function(Box::new(function)));
        }
        match syn::parse2::<ItemImpl>(item) {
            Ok(item) => Implementation::parse(&item, purpose),
            Err(_) => Ok(Self::Declaration),
        }
    }

    /// The type of the objects that it is about.
    pub(crate) fn object(&self) -> Option<&Type> {
        match self {
            Self::Function(function) => Some(&function.object),
            Self::Implementation(implementation) => Some(&implementation.object),
            Self::Declaration => None,
        }
    }

    /// The verbs that it is asked about, of those that the attribute names. None means those of creations and updates.
    pub(crate) fn verbs(&self, named: Vec<LitStr>) -> Result<Vec<LitStr>> {
        let purpose = match self {
            Self::Function(function) => function.purpose,
            Self::Implementation(implementation) => implementation.purpose,
            Self::Declaration => return Ok(named),
        };
        for verb in &named {
            check_verb(verb, purpose)?;
        }
        match self {
            Self::Function(function) => function.check_verbs(&named).map(|()| named),
            Self::Implementation(of) if of.purpose == Purpose::Validating => of.verbs(named),
            _ => Ok(named),
        }
    }

    /// What makes a type of a function, for a place of its own.
    pub(crate) fn adapter(&self) -> TokenStream {
        match self {
            Self::Function(function) => function.adapter(),
            _ => TokenStream::new(),
        }
    }

    /// What adds it to the webhooks that are served.
    pub(crate) fn serve(&self) -> TokenStream {
        let (purpose, object, hook) = match self {
            Self::Function(it) => (it.purpose, &it.object, quote!(__KubewrightWebhook)),
            Self::Implementation(it) => {
                let holder = &it.holder;
                let made = quote!(<#holder as ::core::default::Default>::default());
                (it.purpose, &it.object, made)
            }
            Self::Declaration => return quote!(::core::option::Option::None),
        };
        let adds = match purpose {
            Purpose::Mutating => quote!(defaulting),
            Purpose::Validating => quote!(validating),
        };
        quote!(::core::option::Option::Some(|hooks, path| hooks.#adds::<#object>(path, #hook)))
    }
}

/// Whether functions and methods can be asked about a verb at all.
fn check_verb(verb: &LitStr, purpose: Purpose) -> Result<()> {
    let problem = match (purpose, verb.value().as_str()) {
        (_, "create" | "update") | (Purpose::Validating, "delete") => return Ok(()),
        (Purpose::Mutating, _) => {
            "nothing but objects that are stored can be changed: the verbs are `create` and `update`"
        }
        (Purpose::Validating, _) => {
            "objects of a type can be validated in `create`, `update` and `delete`: answer other requests with `Webhooks::admission`"
        }
    };
    Err(Error::new_spanned(verb, problem))
}

impl Function {
    fn parse(signature: &Signature, purpose: Purpose) -> Result<Self> {
        let wanted = || {
            let wanted = match purpose {
                Purpose::Mutating => {
                    "a mutating function takes `&mut K`, then `&Request` or nothing more, and returns nothing or a `Result`"
                }
                Purpose::Validating => {
                    "a validating function takes `&K`, then `Option<&K>`, `&Request`, both or nothing more, and returns a `Result`"
                }
            };
            Error::new_spanned(signature, wanted)
        };
        if let Some(receiver) = signature.receiver() {
            let problem = "write this on the `impl` or another item outside of it: a method has no place beside it";
            return Err(Error::new_spanned(receiver, problem));
        }
        let types: Option<Vec<&Type>> = signature.inputs.iter().map(typed).collect();
        let mut types = types.unwrap_or_default().into_iter().peekable();
        let object = types.next().and_then(|first| match first {
            Type::Reference(it) if it.mutability.is_some() == (purpose == Purpose::Mutating) => {
                Some(&*it.elem)
            }
            _ => None,
        });
        let object = object.ok_or_else(wanted)?.clone();
        let takes_old =
            purpose == Purpose::Validating && types.next_if(|it| is_option(it)).is_some();
        let takes_request = types.next_if(|it| is_shared(it)).is_some();
        let returns = returns_value(&signature.output);
        let is_generic = signature.generics.type_params().next().is_some();
        if types.next().is_some() || is_generic || (purpose == Purpose::Validating && !returns) {
            return Err(wanted());
        }
        Ok(Self {
            name: signature.ident.clone(),
            object,
            purpose,
            takes_old,
            takes_request,
            is_async: signature.asyncness.is_some(),
            returns,
        })
    }

    fn check_verbs(&self, named: &[LitStr]) -> Result<()> {
        let deleted = named.iter().find(|verb| verb.value() == "delete");
        let Some(verb) = deleted.filter(|_| self.takes_old) else {
            return Ok(());
        };
        let object = text(&self.object);
        let problem = format!(
            "a deletion has one object, the one that is deleted: write a function that takes `&{object}` and not `Option<&{object}>`, or `impl Validating<{object}>` with a method for each verb"
        );
        Err(Error::new_spanned(verb, problem))
    }

    fn adapter(&self) -> TokenStream {
        let implementation = match self.purpose {
            Purpose::Mutating => self.defaulting(),
            Purpose::Validating => self.validating(),
        };
        quote! {
            struct __KubewrightWebhook;
            #implementation
        }
    }

    fn defaulting(&self) -> TokenStream {
        let object = &self.object;
        let call = self.call(&quote!(__object), None);
        let body = if self.returns {
            quote!(::core::result::Result::map_err(#call, ::core::convert::Into::into))
        } else {
            quote!(#call; ::core::result::Result::Ok(()))
        };
        quote! {
            impl ::kubewright::webhook::Defaulting<#object> for __KubewrightWebhook {
                async fn set_defaults(
                    &self, __object: &mut #object, __request: &::kubewright::webhook::Request,
                ) -> ::core::result::Result<(), ::kubewright::webhook::Denial> { #body }
            }
        }
    }

    fn validating(&self) -> TokenStream {
        let object = &self.object;
        let method = |name: TokenStream, parameters: TokenStream, call: TokenStream| {
            quote! {
                async fn #name(
                    &self, #parameters, __request: &::kubewright::webhook::Request,
                ) -> ::kubewright::webhook::ValidationResult {
                    ::kubewright::webhook::IntoValidationResult::into_validation_result(#call)
                }
            }
        };
        let new = quote!(__object);
        let create = self.call(&new, Some(quote!(::core::option::Option::None)));
        let create = method(quote!(create), quote!(__object: &#object), create);
        let update = self.call(&new, Some(quote!(::core::option::Option::Some(__old))));
        let both = quote!(__object: &#object, __old: &#object);
        let update = method(quote!(update), both, update);
        let delete = (!self.takes_old).then(|| {
            let call = self.call(&quote!(__old), None);
            method(quote!(delete), quote!(__old: &#object), call)
        });
        quote! {
            impl ::kubewright::webhook::Validating<#object> for __KubewrightWebhook {
                #create
                #update
                #delete
            }
        }
    }

    /// A call of the function with an object, and the old one if it takes that.
    fn call(&self, object: &TokenStream, old: Option<TokenStream>) -> TokenStream {
        let name = &self.name;
        let old = old.filter(|_| self.takes_old).into_iter();
        let request = self.takes_request.then(|| quote!(__request)).into_iter();
        let wait = self.is_async.then(|| quote!(.await));
        quote!(#name(#object #(, #old)* #(, #request)*) #wait)
    }
}

impl Implementation {
    fn parse(item: &ItemImpl, purpose: Purpose) -> Result<Hook> {
        let implemented = item.trait_.as_ref();
        let Some(segment) = implemented.and_then(|(_, path, _)| path.segments.last()) else {
            return Ok(Hook::Declaration);
        };
        let of = match segment.ident.to_string().as_str() {
            "Validating" => Purpose::Validating,
            "Defaulting" => Purpose::Mutating,
            _ => return Ok(Hook::Declaration),
        };
        if of != purpose {
            let problem =
                "`validating` stands on `impl Validating<K>`, `mutating` on `impl Defaulting<K>`";
            return Err(Error::new_spanned(segment, problem));
        }
        let methods = item.items.iter().filter_map(|item| match item {
            ImplItem::Fn(method) => Some(method.sig.ident.clone()),
            _ => None,
        });
        Ok(Hook::Implementation(Box::new(Self {
            holder: (*item.self_ty).clone(),
            object: argument(segment)?,
            purpose,
            methods: methods.collect(),
        })))
    }

    /// The verbs that there are methods for, which are those that the attribute names if it names any.
    fn verbs(&self, named: Vec<LitStr>) -> Result<Vec<LitStr>> {
        let methods = VERBS
            .iter()
            .filter_map(|verb| self.methods.iter().find(|it| *it == verb));
        let methods: Vec<LitStr> = methods
            .map(|method| LitStr::new(&method.to_string(), method.span()))
            .collect();
        if methods.is_empty() {
            let problem = "it validates nothing: write a method `create`, `update` or `delete`";
            return Err(Error::new_spanned(&self.holder, problem));
        }
        if named.is_empty() {
            return Ok(methods);
        }
        let missing = |all: &[LitStr], one: &LitStr| all.iter().all(|it| it.value() != one.value());
        if let Some(verb) = named.iter().find(|verb| missing(&methods, verb)) {
            let problem = format!(
                "without a method `{}` all of them would be allowed",
                verb.value()
            );
            return Err(Error::new_spanned(verb, problem));
        }
        if let Some(method) = methods.iter().find(|method| missing(&named, method)) {
            let problem = format!(
                "it is never called: `verbs` does not have `{}`",
                method.value()
            );
            return Err(Error::new_spanned(method, problem));
        }
        Ok(named)
    }
}

/// The one type that a trait is about.
fn argument(segment: &PathSegment) -> Result<Type> {
    let arguments = match &segment.arguments {
        PathArguments::AngleBracketed(found) => found.args.iter().collect(),
        _ => Vec::new(),
    };
    match arguments[..] {
        [GenericArgument::Type(object)] => Ok(object.clone()),
        _ => Err(Error::new_spanned(
            segment,
            "the type of its objects is missing",
        )),
    }
}

fn typed(input: &FnArg) -> Option<&Type> {
    match input {
        FnArg::Typed(input) => Some(&input.ty),
        FnArg::Receiver(_) => None,
    }
}

fn is_shared(found: &Type) -> bool {
    matches!(found, Type::Reference(it) if it.mutability.is_none())
}

fn is_option(found: &Type) -> bool {
    let Type::Path(found) = found else {
        return false;
    };
    found
        .path
        .segments
        .last()
        .is_some_and(|last| last.ident == "Option")
}

fn returns_value(output: &ReturnType) -> bool {
    match output {
        ReturnType::Default => false,
        ReturnType::Type(_, found) => {
            !matches!(&**found, Type::Tuple(tuple) if tuple.elems.is_empty())
        }
    }
}

/// A type as people write it.
fn text(found: &Type) -> String {
    found.to_token_stream().to_string().replace(' ', "")
}

#[cfg(test)]
mod tests;
