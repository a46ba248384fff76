//! The messages of gnostic's `openapi.v2` package: JSON names, field numbers, contents.

/// What a message holds.
pub(super) struct Message {
    /// Fields by their JSON name.
    pub(super) fields: &'static [(&'static str, u32, Content)],
    /// Field for keys that start with `x-`.
    pub(super) extensions: Option<u32>,
    /// Field for all other keys, and what their values are.
    pub(super) rest: Option<(u32, Content)>,
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Text,
    Flag,
    Integer,
    Number,
    /// Any value, written as text in a message of its own.
    Any,
    Message(&'static Message),
    /// A list; a single value is a list of one.
    Each(&'static Content),
    /// In field 1 of a message of its own.
    Inside(&'static Content),
    /// A schema or a boolean.
    SchemaOrFlag,
    /// A parameter, whose message depends on its place.
    Parameter,
    /// A way to prove who one is.
    Security,
}

use Content::{Any, Each, Flag, Inside, Integer, Number, Parameter, SchemaOrFlag, Security, Text};

const TEXTS: Content = Each(&Text);
const PARAMETERS: Content = Each(&Parameter);
const OPERATION_FIELD: Content = Content::Message(&OPERATION);

/// A message whose keys are all names of values, in field 1.
const fn named(value: Content) -> Message {
    Message {
        fields: &[],
        extensions: None,
        rest: Some((1, value)),
    }
}

pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Text),
        ("info", 2, Content::Message(&INFO)),
        ("host", 3, Text),
        ("basePath", 4, Text),
        ("schemes", 5, TEXTS),
        ("consumes", 6, TEXTS),
        ("produces", 7, TEXTS),
        ("paths", 8, Content::Message(&PATHS)),
        ("definitions", 9, Content::Message(&NAMED_SCHEMAS)),
        ("parameters", 10, Content::Message(&NAMED_PARAMETERS)),
        ("responses", 11, Content::Message(&NAMED_RESPONSES)),
        ("security", 12, Each(&Content::Message(&REQUIREMENT))),
        ("securityDefinitions", 13, Content::Message(&NAMED_SECURITY)),
        ("tags", 14, Each(&Content::Message(&TAG))),
        ("externalDocs", 15, Content::Message(&DOCUMENTATION)),
    ],
    extensions: Some(16),
    rest: None,
};

static INFO: Message = Message {
    fields: &[
        ("title", 1, Text),
        ("version", 2, Text),
        ("description", 3, Text),
        ("termsOfService", 4, Text),
        ("contact", 5, Content::Message(&CONTACT)),
        ("license", 6, Content::Message(&LICENSE)),
    ],
    extensions: Some(7),
    rest: None,
};

static CONTACT: Message = Message {
    fields: &[("name", 1, Text), ("url", 2, Text), ("email", 3, Text)],
    extensions: Some(4),
    rest: None,
};

static LICENSE: Message = Message {
    fields: &[("name", 1, Text), ("url", 2, Text)],
    extensions: Some(3),
    rest: None,
};

static TAG: Message = Message {
    fields: &[
        ("name", 1, Text),
        ("description", 2, Text),
        ("externalDocs", 3, Content::Message(&DOCUMENTATION)),
    ],
    extensions: Some(4),
    rest: None,
};

static DOCUMENTATION: Message = Message {
    fields: &[("description", 1, Text), ("url", 2, Text)],
    extensions: Some(3),
    rest: None,
};

static PATHS: Message = Message {
    fields: &[],
    extensions: Some(1),
    rest: Some((2, Content::Message(&PATH_ITEM))),
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("get", 2, OPERATION_FIELD),
        ("put", 3, OPERATION_FIELD),
        ("post", 4, OPERATION_FIELD),
        ("delete", 5, OPERATION_FIELD),
        ("options", 6, OPERATION_FIELD),
        ("head", 7, OPERATION_FIELD),
        ("patch", 8, OPERATION_FIELD),
        ("parameters", 9, PARAMETERS),
    ],
    extensions: Some(10),
    rest: None,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("externalDocs", 4, Content::Message(&DOCUMENTATION)),
        ("operationId", 5, Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, PARAMETERS),
        ("responses", 9, Content::Message(&RESPONSES)),
        ("schemes", 10, TEXTS),
        ("deprecated", 11, Flag),
        ("security", 12, Each(&Content::Message(&REQUIREMENT))),
    ],
    extensions: Some(13),
    rest: None,
};

static RESPONSES: Message = Message {
    fields: &[],
    extensions: Some(2),
    rest: Some((1, Inside(&Content::Message(&RESPONSE)))),
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("schema", 2, Inside(&Content::Message(&SCHEMA))),
    ],
    extensions: Some(5),
    rest: None,
};

pub(super) static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Number),
        ("maximum", 7, Number),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Number),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, TEXTS),
        ("enum", 20, Each(&Any)),
        ("additionalProperties", 21, SchemaOrFlag),
        ("type", 22, Inside(&TEXTS)),
        ("items", 23, Inside(&Each(&Content::Message(&SCHEMA)))),
        ("allOf", 24, Each(&Content::Message(&SCHEMA))),
        ("properties", 25, Content::Message(&NAMED_SCHEMAS)),
        ("discriminator", 26, Text),
        ("readOnly", 27, Flag),
        ("externalDocs", 29, Content::Message(&DOCUMENTATION)),
        ("example", 30, Any),
    ],
    extensions: Some(31),
    rest: None,
};

pub(super) static REFERENCE: Message = Message {
    fields: &[("$ref", 1, Text), ("description", 2, Text)],
    extensions: None,
    rest: None,
};

pub(super) static BODY: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, Content::Message(&SCHEMA)),
    ],
    extensions: Some(6),
    rest: None,
};

/// Parameters in headers and paths have the same fields.
pub(super) static HEADER_OR_PATH: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("format", 6, Text),
        ("collectionFormat", 8, Text),
        ("default", 9, Any),
        ("maximum", 10, Number),
        ("minimum", 12, Number),
        ("maxLength", 14, Integer),
        ("minLength", 15, Integer),
        ("pattern", 16, Text),
        ("uniqueItems", 19, Flag),
        ("enum", 20, Each(&Any)),
    ],
    extensions: Some(22),
    rest: None,
};

/// Parameters in forms and queries have the same fields.
pub(super) static FORM_OR_QUERY: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("allowEmptyValue", 5, Flag),
        ("type", 6, Text),
        ("format", 7, Text),
        ("collectionFormat", 9, Text),
        ("default", 10, Any),
        ("maximum", 11, Number),
        ("minimum", 13, Number),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("uniqueItems", 20, Flag),
        ("enum", 21, Each(&Any)),
    ],
    extensions: Some(23),
    rest: None,
};

pub(super) static BASIC: Message = Message {
    fields: &[("type", 1, Text), ("description", 2, Text)],
    extensions: Some(3),
    rest: None,
};

pub(super) static API_KEY: Message = Message {
    fields: &[
        ("type", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("description", 4, Text),
    ],
    extensions: Some(5),
    rest: None,
};

static NAMED_SCHEMAS: Message = named(Content::Message(&SCHEMA));
static NAMED_PARAMETERS: Message = named(Parameter);
static NAMED_RESPONSES: Message = named(Content::Message(&RESPONSE));
static NAMED_SECURITY: Message = named(Security);
static REQUIREMENT: Message = named(Inside(&TEXTS));
