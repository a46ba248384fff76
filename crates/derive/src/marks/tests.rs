use quote::quote;
use syn::parse_quote;

use super::*;
use crate::shape::Seen;

fn marks(field: TokenStream) -> Result<String> {
    let item: syn::ItemStruct = parse_quote!(struct A { #field });
    let mut field = item.fields.into_iter().next().expect("a field");
    let shape = Seen::of(&field.ty).shape;
    let marks = Marks::take(&mut field.attrs, Place::Field, &shape)?;
    Ok(marks.attribute().unwrap_or_default().to_string())
}

fn wrong(field: TokenStream, expected: &str) {
    let error = marks(field).expect_err("an error").to_string();
    assert!(error.starts_with(expected), "{error}");
}

fn right(field: TokenStream, expected: TokenStream) {
    let found = marks(field).expect("no error");
    assert!(found.contains(&expected.to_string()), "{found}");
}

#[test]
fn options_become_keys_of_the_schema() {
    right(
        quote!(#[k8s(min = -2, multiple_of = 2)] a: i32),
        quote!(.set("minimum", -2) .set("multipleOf", 2)),
    );
    right(
        quote!(#[k8s(exclusive_min)] a: i32),
        quote!(.set("exclusiveMinimum", true)),
    );
    right(
        quote!(#[k8s(exclusive_max = 5)] a: f64),
        quote!(.set("maximum", 5).set("exclusiveMaximum", true)),
    );
    right(
        quote!(#[k8s(list = map(name, "x-y", host_port))] a: Vec<P>),
        quote!(.set("x-kubernetes-list-map-keys", ["name", "x-y", "hostPort"])),
    );
    right(
        quote!(#[k8s(map = atomic)] a: BTreeMap<String, String>),
        quote!(.set("x-kubernetes-map-type", "atomic")),
    );
    right(
        quote!(#[k8s(default = {})] a: T),
        quote!(.default(::kubewright::__private::empty_object())),
    );
    right(
        quote!(#[k8s(items(min_length = 1))] a: Vec<String>),
        quote!(.set("minLength", { let count: u64 = 1; count })),
    );
}

#[test]
fn an_option_that_does_not_fit_the_type_is_an_error() {
    wrong(
        quote!(#[k8s(min = 1)] a: String),
        "`min` is about numbers, and this is a text",
    );
    wrong(
        quote!(#[k8s(min = 1)] a: Option<String>),
        "`min` is about numbers, and this is a text",
    );
    wrong(
        quote!(#[k8s(pattern = "a")] a: u8),
        "`pattern` is about texts, and this is a number",
    );
    wrong(
        quote!(#[k8s(list = set)] a: String),
        "`list` is about lists, and this is a text",
    );
    wrong(
        quote!(#[k8s(items(min = 1))] a: Vec<String>),
        "`min` is about numbers, and this is a text",
    );
    wrong(
        quote!(#[k8s(max_properties = 1)] a: Vec<u8>),
        "`max_properties` is about maps and structs, and this is a list",
    );
    wrong(
        quote!(#[k8s(atomic)] a: BTreeMap<String, u8>),
        "`atomic` is about structs, and this is a map",
    );
}

#[test]
fn an_unknown_option_tells_the_known_ones() {
    wrong(
        quote!(#[k8s(immutible)] a: u8),
        "unknown option `immutible`; did you mean `immutable`? Known are: min, max,",
    );
    wrong(
        quote!(#[k8s(one_of(a, b))] a: T),
        "`one_of` can stand on a type, not on a field",
    );
    wrong(
        quote!(#[k8s(items(immutable))] a: Vec<u8>),
        "`immutable` can stand on a field, not on elements",
    );
}

#[test]
fn a_wrong_value_tells_what_is_wanted() {
    wrong(quote!(#[k8s(min = "1")] a: u8), "`min` wants a number");
    wrong(
        quote!(#[k8s(min_length = -1)] a: String),
        "`min_length` wants a whole number that is not negative",
    );
    wrong(
        quote!(#[k8s(immutable = true)] a: u8),
        "`immutable` stands alone, without a value",
    );
    wrong(
        quote!(#[k8s(list = bag)] a: Vec<u8>),
        "write `list = map(key)`, `list = set` or `list = atomic`",
    );
    wrong(
        quote!(#[k8s(rule(1))] a: u8),
        "write `rule(\"CEL expression\", message = \"..\")`",
    );
    wrong(
        quote!(#[k8s(rule("a", reason = "No"))] a: u8),
        "unknown reason `No`. Known are: FieldValueInvalid",
    );
    wrong(
        quote!(#[k8s(rule("a", field_path = "x"))] a: u8),
        "a path begins with a dot",
    );
    wrong(
        quote!(#[k8s(docs(description = "x"))] a: u8),
        "write `docs(url = \"..\", description = \"..\")`",
    );
    wrong(
        quote!(#[k8s(min = 1, min = 2)] a: u8),
        "`min` is given twice",
    );
}
