//! What can be seen of a Rust type: enough to refuse a minimum on a text.

use syn::{GenericArgument, PathArguments, Type};

/// What values of a type look like in JSON, as far as its name tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A text, such as a `String`.
    Text,
    /// A whole number or a float.
    Number,
    /// Either `true` or `false`.
    Boolean,
    /// A list of such elements.
    List(Box<Shape>),
    /// A map with texts as keys.
    Map,
    /// Any other type: it may look like anything.
    Unknown,
}

/// A type as a field has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The shape of the value.
    pub(crate) shape: Shape,
    /// Whether it is an `Option`.
    pub(crate) optional: bool,
}

impl Seen {
    /// Looks at a type.
    pub(crate) fn of(ty: &Type) -> Self {
        match argument(ty, &["Option"]) {
            Some(inner) => Self {
                shape: shape(inner),
                optional: true,
            },
            None => Self {
                shape: shape(ty),
                optional: false,
            },
        }
    }
}

const POINTERS: &[&str] = &["Box", "Arc", "Rc", "Cow", "Option"];
const LISTS: &[&str] = &[
    "Vec",
    "VecDeque",
    "LinkedList",
    "HashSet",
    "BTreeSet",
    "IndexSet",
];
const MAPS: &[&str] = &["HashMap", "BTreeMap", "IndexMap"];
const TEXTS: &[&str] = &["String", "str", "char", "PathBuf"];
const NUMBERS: &[&str] = &[
    "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize", "f32",
    "f64",
];

fn shape(ty: &Type) -> Shape {
    if let Some(inner) = argument(ty, POINTERS) {
        return shape(inner);
    }
    if let Some(element) = argument(ty, LISTS) {
        return Shape::List(Box::new(shape(element)));
    }
    match ty {
        Type::Array(array) => Shape::List(Box::new(shape(&array.elem))),
        Type::Slice(slice) => Shape::List(Box::new(shape(&slice.elem))),
        Type::Reference(reference) => shape(&reference.elem),
        Type::Paren(inner) => shape(&inner.elem),
        Type::Group(inner) => shape(&inner.elem),
        _ => named(&last_name(ty).unwrap_or_default()),
    }
}

fn named(name: &str) -> Shape {
    match name {
        "bool" => Shape::Boolean,
        _ if TEXTS.contains(&name) => Shape::Text,
        _ if NUMBERS.contains(&name) => Shape::Number,
        _ if MAPS.contains(&name) => Shape::Map,
        _ => Shape::Unknown,
    }
}

fn last_name(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    path.path
        .segments
        .last()
        .map(|segment| segment.ident.to_string())
}

/// The last type argument of a type with one of these names.
fn argument<'a>(ty: &'a Type, names: &[&str]) -> Option<&'a Type> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last()?;
    if !names.iter().any(|name| segment.ident == name) {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    // A hasher may follow the element of a set.
    if names.contains(&"HashSet") {
        types.into_iter().next()
    } else {
        types.last()
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn shapes_are_read_through_pointers_and_options() {
        let check = |ty: Type, shape: Shape, optional: bool| {
            assert_eq!(Seen::of(&ty), Seen { shape, optional })
        };
        check(parse_quote!(String), Shape::Text, false);
        check(parse_quote!(Option<Box<i32>>), Shape::Number, true);
        check(
            parse_quote!(std::option::Option<std::string::String>),
            Shape::Text,
            true,
        );
        check(
            parse_quote!(Vec<Option<bool>>),
            Shape::List(Box::new(Shape::Boolean)),
            false,
        );
        check(
            parse_quote!([u8; 4]),
            Shape::List(Box::new(Shape::Number)),
            false,
        );
        check(
            parse_quote!(HashSet<String, Hasher>),
            Shape::List(Box::new(Shape::Text)),
            false,
        );
        check(parse_quote!(BTreeMap<String, i32>), Shape::Map, false);
        check(parse_quote!(Condition), Shape::Unknown, false);
    }
}
