//! A type with `#[k8s(..)]` on it and its fields: takes the attributes out and writes schemars' own instead.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Result, parse_quote};

use crate::marks::{Marks, Place};
use crate::names::{Case, in_cel, in_json, metas, serde_has};
use crate::shape::{Seen, Shape};

/// `#[schema]`.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let derives = &["JsonSchema", "KubeSchema"];
    let (item, problems) = match translated(item.clone(), derives, "schema") {
        Ok((item, problems)) => (item.to_token_stream(), problems),
        Err(error) => return refused(item, &error),
    };
    let arguments = if arguments.is_empty() {
        None
    } else {
        Some(Error::new_spanned(arguments, "`schema` has no options").to_compile_error())
    };
    quote!(#item #problems #arguments)
}

/// An error, and the type as it is, so that the error is the only one.
pub(crate) fn refused(item: TokenStream, error: &Error) -> TokenStream {
    let error = error.to_compile_error();
    let Ok(mut input) = syn::parse2::<DeriveInput>(item.clone()) else {
        return quote!(#item #error);
    };
    let strip = |attributes: &mut Vec<Attribute>| {
        attributes.retain(|attribute| !attribute.path().is_ident("k8s"))
    };
    strip(&mut input.attrs);
    match &mut input.data {
        Data::Struct(data) => data
            .fields
            .iter_mut()
            .for_each(|field| strip(&mut field.attrs)),
        Data::Enum(data) => {
            let fields = data
                .variants
                .iter_mut()
                .flat_map(|variant| variant.fields.iter_mut());
            fields.for_each(|field| strip(&mut field.attrs));
        }
        Data::Union(_) => {}
    }
    quote!(#input #error)
}

/// The type without `k8s` attributes, and what was wrong with them. Both, so that one mistake does not look like many.
pub(crate) fn translated(
    item: TokenStream,
    derives: &[&str],
    attribute: &str,
) -> Result<(DeriveInput, Option<TokenStream>)> {
    let wrong = format!("`{attribute}` stands on a struct or an enum");
    let mut input: DeriveInput =
        syn::parse2(item.clone()).map_err(|_| Error::new_spanned(&item, wrong))?;
    if !has_derive(&input.attrs, derives) {
        // A derive further up has run already, and has seen nothing of what is about to be written.
        let text = format!(
            "`#[kubewright::{attribute}]` stands above `#[derive({})]`, which has to see what it writes",
            derives[0]
        );
        return Err(Error::new_spanned(&input.ident, text));
    }
    let problems = translate(&mut input).err();
    Ok((input, problems.map(|error| error.to_compile_error())))
}

fn has_derive(attributes: &[Attribute], names: &[&str]) -> bool {
    let derived = metas(attributes, "derive");
    derived.iter().any(|meta| {
        let last = meta.path().segments.last();
        last.is_some_and(|last| names.iter().any(|name| last.ident == name))
    })
}

fn translate(input: &mut DeriveInput) -> Result<()> {
    let shape = match &input.data {
        Data::Struct(data) if matches!(&data.fields, Fields::Unnamed(f) if f.unnamed.len() == 1) => {
            data.fields
                .iter()
                .next()
                .map_or(Shape::Unknown, |field| Seen::of(&field.ty).shape)
        }
        _ => Shape::Unknown,
    };
    let marks = Marks::take(&mut input.attrs, Place::Type, &shape);
    let serializes = has_derive(&input.attrs, &["Serialize"]);
    let case = Case::of(&input.attrs);
    let defaulted = serde_has(&input.attrs, &["default"]);
    let mut problems = Problems::default();
    let mut marks = problems.keep(marks).unwrap_or_default();
    match &mut input.data {
        Data::Struct(data) => {
            let names = Names {
                case,
                fields: fields_of(&data.fields, case),
            };
            problems.keep(groups(&mut marks, &names));
            for field in &mut data.fields {
                problems.keep(translate_field(field, serializes, |field| {
                    parent_rule(&mut marks, field, defaulted, &names)
                }));
            }
        }
        Data::Enum(data) => {
            let alone = marks.groups.first().map(|group| group.fields[0].clone());
            problems.keep(alone.map_or(Ok(()), |field| {
                Err(Error::new(field.span(), "an enum has no fields of its own"))
            }));
            let fields = data
                .variants
                .iter_mut()
                .flat_map(|variant| variant.fields.iter_mut());
            for field in fields {
                problems.keep(translate_field(field, serializes, |_| ()));
            }
        }
        Data::Union(_) => {}
    }
    push(&mut input.attrs, &marks);
    problems.0.map_or(Ok(()), Err)
}

/// Gathers errors, so that all are reported at once.
#[derive(Default)]
struct Problems(Option<Error>);

impl Problems {
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(problems)) => problems.combine(error),
            (Err(error), none) => *none = Some(error),
        }
        None
    }
}

/// The names that the fields of a struct have in JSON.
struct Names {
    case: Case,
    fields: Vec<(String, String)>,
}

fn fields_of(fields: &Fields, case: Case) -> Vec<(String, String)> {
    let named = fields.iter().filter_map(|field| {
        let name = field.ident.as_ref()?.to_string();
        Some((name, in_json(field, case)?))
    });
    named.collect()
}

fn groups(marks: &mut Marks, names: &Names) -> Result<()> {
    for group in std::mem::take(&mut marks.groups) {
        let mut found = Vec::new();
        for field in &group.fields {
            let known = names.fields.iter().find(|(name, _)| field == name);
            let Some((_, json)) = known else {
                let all: Vec<&str> = names.fields.iter().map(|(name, _)| name.as_str()).collect();
                let text = format!("there is no field `{field}`. There are: {}", all.join(", "));
                return Err(Error::new(field.span(), text));
            };
            found.push(json.clone());
        }
        let (rule, message) = group.rule(&found);
        marks.rule(&rule, &message);
    }
    Ok(())
}

fn translate_field(
    field: &mut Field,
    serializes: bool,
    immutable: impl FnOnce(&Field),
) -> Result<()> {
    let seen = Seen::of(&field.ty);
    let marks = Marks::take(&mut field.attrs, Place::Field, &seen.shape)?;
    push(&mut field.attrs, &marks);
    if marks.immutable.is_some() {
        immutable(field);
    }
    let written = ["skip", "skip_serializing", "skip_serializing_if", "flatten"];
    let plain = field.ident.is_some() && !serde_has(&field.attrs, &written);
    if seen.optional && serializes && !marks.nullable && plain {
        // Whoever applies an object would own the null otherwise.
        field
            .attrs
            .push(parse_quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")]));
    }
    Ok(())
}

/// An optional field that may not change may not go away either, and only the type around it can see that.
fn parent_rule(marks: &mut Marks, field: &Field, defaulted: bool, names: &Names) {
    let optional =
        Seen::of(&field.ty).optional || defaulted || serde_has(&field.attrs, &["default"]);
    if let (true, Some(name)) = (optional, in_json(field, names.case)) {
        let cel = in_cel(&name);
        let rule = format!("!has(oldSelf.{cel}) || has(self.{cel})");
        marks.rule(&rule, &format!("field {name} is immutable once set"));
    }
}

fn push(attributes: &mut Vec<Attribute>, marks: &Marks) {
    if let Some(tokens) = marks.attribute() {
        attributes.push(parse_quote!(#tokens));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(item: TokenStream) -> String {
        let (item, problems) = translated(item, &["JsonSchema"], "schema").expect("a type");
        problems.map_or_else(
            || item.to_token_stream().to_string(),
            |problems| problems.to_string(),
        )
    }

    #[test]
    fn an_optional_field_is_left_out_rather_than_null() {
        let left_out = "skip_serializing_if";
        let with = text(quote! { #[derive(Serialize, JsonSchema)] struct A { a: Option<u8> } });
        assert!(with.contains(left_out), "{with}");
        for without in [
            quote! { #[derive(JsonSchema)] struct A { a: Option<u8> } },
            quote! { #[derive(Serialize, JsonSchema)] struct A { #[k8s(nullable)] a: Option<u8> } },
            quote! { #[derive(Serialize, JsonSchema)] struct A { #[serde(flatten)] a: Option<B> } },
            quote! { #[derive(Serialize, JsonSchema)] struct A { a: u8 } },
        ] {
            let without = text(without);
            assert!(!without.contains(left_out), "{without}");
        }
    }

    #[test]
    fn the_order_of_attributes_is_checked() {
        let late = translated(
            quote! { #[serde(default)] struct A { a: u8 } },
            &["JsonSchema"],
            "schema",
        );
        let text = late.map(|_| ()).expect_err("an error").to_string();
        assert_eq!(
            text,
            "`#[kubewright::schema]` stands above `#[derive(JsonSchema)]`, which has to see what it writes"
        );
    }

    #[test]
    fn groups_name_fields_of_the_type() {
        let item = quote! {
            #[derive(JsonSchema)]
            #[serde(rename_all = "camelCase")]
            #[k8s(one_of(from_file, from_url))]
            struct A { from_file: Option<String>, from_url: Option<String> }
        };
        let written = text(item);
        assert!(
            written.contains("(has(self.fromFile)?1:0)+(has(self.fromUrl)?1:0) == 1"),
            "{written}"
        );
        let wrong =
            text(quote! { #[derive(JsonSchema)] #[k8s(one_of(a, c))] struct A { a: u8, b: u8 } });
        assert!(
            wrong.contains("there is no field `c`. There are: a, b"),
            "{wrong}"
        );
    }

    #[test]
    fn an_optional_immutable_field_may_not_go_away() {
        let written =
            text(quote! { #[derive(JsonSchema)] struct A { #[k8s(immutable)] a: Option<u8> } });
        assert!(
            written.contains("!has(oldSelf.a) || has(self.a)"),
            "{written}"
        );
        let written = text(quote! { #[derive(JsonSchema)] struct A { #[k8s(immutable)] a: u8 } });
        assert!(!written.contains("has(oldSelf.a)"), "{written}");
    }
}
