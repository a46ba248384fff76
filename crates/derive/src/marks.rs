//! `#[k8s(..)]`: what it may say, where, about what; and the code that writes it into a schema.

mod grammar;
mod rule;
mod table;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, Error, Expr, Result};

use crate::list::unknown;
use crate::shape::Shape;
use grammar::{Item, Value};
use table::{Argument, Entry, TABLE};

pub(crate) use rule::Groups;

/// Where an attribute stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a field of a struct.
    Field,
    /// On a struct or an enum.
    Type,
    /// Inside `items(..)`: about the elements of a list.
    Items,
}

/// All that `#[k8s(..)]` says about one place.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Calls that write into the schema, in the order of the source.
    calls: Vec<TokenStream>,
    /// Whether the value may not change.
    pub(crate) immutable: Option<Ident>,
    /// Whether a null is meant.
    pub(crate) nullable: bool,
    /// Groups of fields of which so many are to be set.
    pub(crate) groups: Vec<Groups>,
}

impl Marks {
    /// Takes the `k8s` attributes out of a list, and reads them.
    pub(crate) fn take(
        attributes: &mut Vec<Attribute>,
        place: Place,
        shape: &Shape,
    ) -> Result<Self> {
        let (own, others): (Vec<_>, Vec<_>) = attributes
            .drain(..)
            .partition(|attribute| attribute.path().is_ident("k8s"));
        *attributes = others;
        let mut marks = Self::default();
        let mut seen: Vec<String> = Vec::new();
        let mut problems: Option<Error> = None;
        for attribute in own {
            let items = grammar::parse(&attribute)?;
            for item in items {
                if let Err(problem) = marks.add(item, place, shape, &mut seen) {
                    match &mut problems {
                        Some(problems) => problems.combine(problem),
                        None => problems = Some(problem),
                    }
                }
            }
        }
        problems.map_or(Ok(marks), Err)
    }

    /// Adds a rule that comes from elsewhere than an attribute.
    pub(crate) fn rule(&mut self, rule: &str, message: &str) {
        self.calls.push(rule::call(rule, message));
    }

    /// The attribute for schemars, if there is anything to say.
    pub(crate) fn attribute(&self) -> Option<TokenStream> {
        let body = self.body()?;
        Some(quote! {
            #[schemars(transform = |schema: &mut ::kubewright::__private::Schema| { #body; })]
        })
    }

    fn body(&self) -> Option<TokenStream> {
        let calls = &self.calls;
        (!calls.is_empty()).then(|| quote!(::kubewright::__private::Marks::on(schema) #(#calls)*))
    }

    fn add(
        &mut self,
        item: Item,
        place: Place,
        shape: &Shape,
        seen: &mut Vec<String>,
    ) -> Result<()> {
        let name = item.name.to_string();
        let Some(entry) = TABLE.iter().find(|entry| entry.name == name) else {
            let known: Vec<&str> = TABLE
                .iter()
                .filter(|e| e.fits(place))
                .map(|e| e.name)
                .collect();
            return Err(Error::new(item.name.span(), unknown(&name, &known)));
        };
        entry.check(&item.name, place, shape)?;
        if !entry.repeats() && seen.contains(&name) {
            return Err(Error::new(
                item.name.span(),
                format!("`{name}` is given twice"),
            ));
        }
        seen.push(name);
        self.translate(entry, item, shape)
    }

    fn translate(&mut self, entry: &Entry, item: Item, shape: &Shape) -> Result<()> {
        let (key, Item { name, value }) = (entry.key, item);
        match entry.argument {
            Argument::Flag => {
                grammar::nothing(&name, &value)?;
                self.nullable |= key == "nullable";
                self.calls.push(quote!(.set(#key, true)));
            }
            Argument::Word(word) => {
                grammar::nothing(&name, &value)?;
                self.calls.push(quote!(.set(#key, #word)));
            }
            Argument::Number | Argument::Count | Argument::Text => {
                let literal = grammar::literal(&name, value, &entry.argument)?;
                self.calls.push(quote!(.set(#key, #literal)));
            }
            Argument::Bound(bound) => self.calls.push(exclusive(&name, value, key, bound)?),
            Argument::Value => {
                let value = json(grammar::expression(&name, value)?);
                self.calls.push(quote!(.set(#key, #value)));
            }
            Argument::Default => {
                let value = json(grammar::expression(&name, value)?);
                self.calls.push(quote!(.default(#value)));
            }
            Argument::Values => {
                let values = grammar::expressions(&name, value)?.into_iter().map(json);
                self.calls.push(quote!(.set(#key, [#(#values),*])));
            }
            Argument::List => self.calls.push(list_type(&name, value)?),
            Argument::Map => self.calls.push(map_type(&name, value)?),
            Argument::Documents => self.calls.push(documents(&name, value)?),
            Argument::Rule => self.calls.push(rule::parse(&name, value)?),
            Argument::Immutable => {
                grammar::nothing(&name, &value)?;
                self.immutable = Some(name);
                self.rule("self == oldSelf", "field is immutable");
            }
            Argument::Group(count) => self.groups.push(Groups::parse(name, value, count)?),
            Argument::Items => self.items(&name, value, shape)?,
        }
        Ok(())
    }

    fn items(&mut self, name: &Ident, value: Value, shape: &Shape) -> Result<()> {
        let element = match shape {
            Shape::List(element) => element.as_ref().clone(),
            _ => Shape::Unknown,
        };
        let mut inner = Self::default();
        let mut seen = Vec::new();
        for item in grammar::nested(name, value)? {
            inner.add(item, Place::Items, &element, &mut seen)?;
        }
        if let Some(body) = inner.body() {
            self.calls.push(quote! {
                .items(|schema: &mut ::kubewright::__private::Schema| { #body; })
            });
        }
        Ok(())
    }
}

/// An expression as JSON. `{}` is an empty object, for it can mean nothing else here.
fn json(value: Expr) -> TokenStream {
    match &value {
        Expr::Block(block) if block.block.stmts.is_empty() => {
            quote!(::kubewright::__private::empty_object())
        }
        _ => quote!(::kubewright::__private::json(&(#value))),
    }
}

/// `exclusive_min` beside a minimum, or `exclusive_min = 3` as both.
fn exclusive(name: &Ident, value: Value, key: &str, bound: &str) -> Result<TokenStream> {
    if matches!(value, Value::None) {
        return Ok(quote!(.set(#key, true)));
    }
    let literal = grammar::literal(name, value, &Argument::Number)?;
    Ok(quote!(.set(#bound, #literal).set(#key, true)))
}

fn list_type(name: &Ident, value: Value) -> Result<TokenStream> {
    let wrong = "write `list = map(key)`, `list = set` or `list = atomic`";
    match grammar::expression(name, value)? {
        Expr::Path(path) if path.path.is_ident("set") => {
            Ok(quote!(.set("x-kubernetes-list-type", "set")))
        }
        Expr::Path(path) if path.path.is_ident("atomic") => {
            Ok(quote!(.set("x-kubernetes-list-type", "atomic")))
        }
        Expr::Call(call) if grammar::is_word(&call.func, "map") && !call.args.is_empty() => {
            let keys = call
                .args
                .iter()
                .map(grammar::key)
                .collect::<Result<Vec<_>>>()?;
            Ok(
                quote!(.set("x-kubernetes-list-type", "map").set("x-kubernetes-list-map-keys", [#(#keys),*])),
            )
        }
        other => Err(Error::new_spanned(other, wrong)),
    }
}

fn map_type(name: &Ident, value: Value) -> Result<TokenStream> {
    match grammar::expression(name, value)? {
        Expr::Path(path) if path.path.is_ident("atomic") => {
            Ok(quote!(.set("x-kubernetes-map-type", "atomic")))
        }
        Expr::Path(path) if path.path.is_ident("granular") => {
            Ok(quote!(.set("x-kubernetes-map-type", "granular")))
        }
        other => Err(Error::new_spanned(
            other,
            "write `map = atomic` or `map = granular`",
        )),
    }
}

fn documents(name: &Ident, value: Value) -> Result<TokenStream> {
    let wrong = || {
        Error::new(
            name.span(),
            "write `docs(url = \"..\", description = \"..\")`",
        )
    };
    let Value::List(tokens) = value else {
        return Err(wrong());
    };
    let mut arguments = crate::list::Arguments::parse(tokens, &["url", "description"])?;
    let url = arguments.text("url")?.ok_or_else(wrong)?;
    let description = crate::permission::option(arguments.text("description")?);
    Ok(quote!(.documents(#url, #description)))
}

#[cfg(test)]
mod tests;
