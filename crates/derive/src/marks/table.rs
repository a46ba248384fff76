//! The options of `#[k8s(..)]`, one line each.

use proc_macro2::Ident;
use syn::{Error, Result};

use super::Place;
use crate::shape::Shape;

/// An option.
pub(super) struct Entry {
    /// As it is written.
    pub(super) name: &'static str,
    /// As the schema has it.
    pub(super) key: &'static str,
    /// What follows it.
    pub(super) argument: Argument,
    /// What it can be about.
    about: About,
    /// Where it can stand.
    places: &'static [Place],
}

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    /// Nothing: the option's name is enough.
    Flag,
    /// Nothing; the key becomes this word.
    Word(&'static str),
    /// A number, as in `= 1.5`.
    Number,
    /// `= 3`, not negative.
    Count,
    /// A text literal, as in `= "text"`.
    Text,
    /// Nothing, or `= 3` which sets this bound as well.
    Bound(&'static str),
    /// Any Rust expression, as in `= expression`.
    Value,
    /// `= expression`, kept even where it is what the type has anyway.
    Default,
    /// A list of Rust expressions, as in `(expression, ..)`.
    Values,
    /// `= map(key) | set | atomic`.
    List,
    /// `= atomic | granular`.
    Map,
    /// `(url = "..", description = "..")`.
    Documents,
    /// `("CEL", message = "..")`.
    Rule,
    /// Nothing; also of interest to the type around.
    Immutable,
    /// `(field, ..)`, of which so many are set.
    Group(super::rule::Count),
    /// `(options of the elements)`.
    Items,
}

/// What an option can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Anything,
    Numbers,
    Texts,
    Lists,
    Maps,
    Structs,
    NumbersAndTexts,
}

use super::rule::Count::{AtLeast, AtMost, Exactly};
use Argument::{
    Bound, Count, Default, Documents, Flag, Group, Immutable, Items, List, Map, Number, Rule, Text,
    Value, Values, Word,
};

const EVERYWHERE: &[Place] = &[Place::Field, Place::Type, Place::Items];
const OWN: &[Place] = &[Place::Field, Place::Type];
const FIELD: &[Place] = &[Place::Field];
const TYPE: &[Place] = &[Place::Type];

const fn entry(
    name: &'static str,
    key: &'static str,
    argument: Argument,
    about: About,
    places: &'static [Place],
) -> Entry {
    Entry {
        name,
        key,
        argument,
        about,
        places,
    }
}

/// All options, in the order in which errors list them.
pub(super) const TABLE: &[Entry] = &[
    entry("min", "minimum", Number, About::Numbers, EVERYWHERE),
    entry("max", "maximum", Number, About::Numbers, EVERYWHERE),
    entry(
        "exclusive_min",
        "exclusiveMinimum",
        Bound("minimum"),
        About::Numbers,
        EVERYWHERE,
    ),
    entry(
        "exclusive_max",
        "exclusiveMaximum",
        Bound("maximum"),
        About::Numbers,
        EVERYWHERE,
    ),
    entry(
        "multiple_of",
        "multipleOf",
        Number,
        About::Numbers,
        EVERYWHERE,
    ),
    entry("min_length", "minLength", Count, About::Texts, EVERYWHERE),
    entry("max_length", "maxLength", Count, About::Texts, EVERYWHERE),
    entry("pattern", "pattern", Text, About::Texts, EVERYWHERE),
    entry("format", "format", Text, About::NumbersAndTexts, EVERYWHERE),
    entry("values", "enum", Values, About::NumbersAndTexts, EVERYWHERE),
    entry("min_items", "minItems", Count, About::Lists, EVERYWHERE),
    entry("max_items", "maxItems", Count, About::Lists, EVERYWHERE),
    entry(
        "list",
        "x-kubernetes-list-type",
        List,
        About::Lists,
        EVERYWHERE,
    ),
    entry("items", "items", Items, About::Lists, EVERYWHERE),
    entry(
        "min_properties",
        "minProperties",
        Count,
        About::Maps,
        EVERYWHERE,
    ),
    entry(
        "max_properties",
        "maxProperties",
        Count,
        About::Maps,
        EVERYWHERE,
    ),
    entry("map", "x-kubernetes-map-type", Map, About::Maps, EVERYWHERE),
    entry(
        "atomic",
        "x-kubernetes-map-type",
        Word("atomic"),
        About::Structs,
        EVERYWHERE,
    ),
    entry(
        "preserve_unknown",
        "x-kubernetes-preserve-unknown-fields",
        Flag,
        About::Maps,
        EVERYWHERE,
    ),
    entry(
        "embedded_resource",
        "x-kubernetes-embedded-resource",
        Flag,
        About::Maps,
        EVERYWHERE,
    ),
    entry(
        "int_or_string",
        "x-kubernetes-int-or-string",
        Flag,
        About::NumbersAndTexts,
        EVERYWHERE,
    ),
    entry("immutable", "", Immutable, About::Anything, FIELD),
    entry(
        "nullable",
        "nullable",
        Flag,
        About::Anything,
        &[Place::Field, Place::Items],
    ),
    entry("default", "default", Default, About::Anything, OWN),
    entry("example", "example", Value, About::Anything, OWN),
    entry("title", "title", Text, About::Anything, OWN),
    entry("docs", "externalDocs", Documents, About::Anything, OWN),
    entry(
        "description_limit",
        "x-kubewright-description-limit",
        Count,
        About::Anything,
        OWN,
    ),
    entry(
        "rule",
        "x-kubernetes-validations",
        Rule,
        About::Anything,
        EVERYWHERE,
    ),
    entry("one_of", "", Group(Exactly), About::Structs, TYPE),
    entry("at_most_one_of", "", Group(AtMost), About::Structs, TYPE),
    entry("at_least_one_of", "", Group(AtLeast), About::Structs, TYPE),
];

impl Entry {
    /// Whether it can stand there.
    pub(super) fn fits(&self, place: Place) -> bool {
        self.places.contains(&place)
    }

    /// Whether it may be given more than once.
    pub(super) fn repeats(&self) -> bool {
        matches!(self.argument, Rule | Group(_))
    }

    /// Whether it makes sense here.
    pub(super) fn check(&self, name: &Ident, place: Place, shape: &Shape) -> Result<()> {
        if !self.fits(place) {
            let places: Vec<&str> = self.places.iter().map(|place| place.describe()).collect();
            let text = format!(
                "`{name}` can stand on {}, not on {}",
                places.join(" or "),
                place.describe()
            );
            return Err(Error::new(name.span(), text));
        }
        if self.about.includes(shape) {
            Ok(())
        } else {
            let text = format!(
                "`{name}` is about {}, and this is {}",
                self.about.describe(),
                describe(shape)
            );
            Err(Error::new(name.span(), text))
        }
    }
}

impl Place {
    fn describe(self) -> &'static str {
        match self {
            Self::Field => "a field",
            Self::Type => "a type",
            Self::Items => "elements",
        }
    }
}

impl About {
    fn includes(self, shape: &Shape) -> bool {
        match (self, shape) {
            (Self::Anything, _) | (_, Shape::Unknown) => true,
            (Self::Numbers, shape) => *shape == Shape::Number,
            (Self::Texts, shape) => *shape == Shape::Text,
            (Self::NumbersAndTexts, shape) => matches!(shape, Shape::Text | Shape::Number),
            (Self::Lists, shape) => matches!(shape, Shape::List(_)),
            (Self::Maps, shape) => *shape == Shape::Map,
            (Self::Structs, _) => false,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Anything => "anything",
            Self::Numbers => "numbers",
            Self::Texts => "texts",
            Self::Lists => "lists",
            Self::Maps => "maps and structs",
            Self::Structs => "structs",
            Self::NumbersAndTexts => "texts and numbers",
        }
    }
}

fn describe(shape: &Shape) -> &'static str {
    match shape {
        Shape::Text => "a text",
        Shape::Number => "a number",
        Shape::Boolean => "true or false",
        Shape::List(_) => "a list",
        Shape::Map => "a map",
        Shape::Unknown => "some other type",
    }
}
