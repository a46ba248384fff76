//! Compiles the schema of one version into types of a [`Table`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::definition::{Scale, Version};
use super::expressions::Expressions;
use super::field_path::{self, Brackets};
use super::schema::{AdditionalProperties, Schema, SizeError};
use crate::rules::{Additional, JsonType, Rules, Validation};
use crate::types::{Field, List, ListKind, Scalar, Shape, Struct, Table, Type, TypeId};
use kubewright_cel::formats;
use kubewright_cel::pattern::{Pattern, PatternBudget, PatternError};

/// Most distinct patterns in one schema.
const MAX_PATTERNS: usize = 1000;
/// Most rules in one schema; each is parsed, checked and kept.
const MAX_RULES: usize = 5000;

/// One version of a custom resource, ready to prune, default and validate objects.
#[derive(Debug, Clone)]
pub struct CompiledVersion {
    /// Types of this version alone, among them a copy of the built-in `ObjectMeta`.
    pub table: Arc<Table>,
    /// The type of an object.
    pub root: TypeId,
    /// What the schema itself says about `metadata`: rules on `name` and `generateName`.
    pub(super) metadata: Option<TypeId>,
    /// Types below this one were imported; schema validation does not look at them.
    pub(super) imported: u32,
    /// The compiled `x-kubernetes-validations`, if there are any.
    pub(super) expressions: Option<Arc<Expressions>>,
    /// The `scale` subresource.
    pub(super) scale: Option<Scale>,
}

/// Why a schema does not compile. A CRD that passed validation always does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The version has no schema.
    #[error("version {0} has no schema")]
    Schema(String),
    /// The schema is too large to walk.
    #[error("schema is too large")]
    Size(#[source] SizeError),
    /// A regular expression is invalid.
    #[error("pattern is invalid")]
    Pattern(#[source] PatternError),
    /// Too many regular expressions.
    #[error("schema has more than {MAX_PATTERNS} distinct patterns")]
    Patterns,
    /// Too many validation rules.
    #[error("schema has more than {MAX_RULES} validation rules")]
    Rules,
}

impl CompiledVersion {
    /// Compiles a version. `object_meta` is the built-in `ObjectMeta` and the table it is in; without it `metadata`
    /// is kept as it is.
    ///
    /// # Errors
    /// When the version has no schema, or one that validation would have refused.
    pub fn new(
        version: &Version,
        object_meta: Option<(&Table, TypeId)>,
    ) -> Result<Self, CompileError> {
        let schema = version.schema.as_ref();
        let schema = schema.ok_or_else(|| CompileError::Schema(version.name.clone()))?;
        let mut compiled = Self::of_schema(schema, object_meta)?;
        compiled.scale = version.scale.clone();
        Ok(compiled)
    }

    pub(super) fn of_schema(
        schema: &Value,
        object_meta: Option<(&Table, TypeId)>,
    ) -> Result<Self, CompileError> {
        let schema = Schema(schema);
        schema.check_size().map_err(CompileError::Size)?;
        let mut compiler = Compiler::new(object_meta);
        let imported = compiler.table.len() as u32;
        let metadata = schema.property("metadata");
        let metadata = metadata.map(|s| compiler.node(s)).transpose()?;
        let root = compiler.root(schema)?;
        if compiler.rules > MAX_RULES {
            return Err(CompileError::Rules);
        }
        let mut compiled = Self {
            table: Arc::new(compiler.table),
            root,
            metadata,
            imported,
            expressions: None,
            scale: None,
        };
        if compiler.rules > 0 {
            compiled.expressions = Some(Arc::new(Expressions::compile(&compiled)));
        }
        Ok(compiled)
    }

    /// Whether the schema has `x-kubernetes-validations` anywhere.
    pub fn has_expressions(&self) -> bool {
        self.expressions.is_some()
    }

    /// Whether a type came from the built-in table rather than from the schema.
    pub(super) fn is_imported(&self, id: TypeId) -> bool {
        id.0 < self.imported
    }
}

struct Compiler {
    table: Table,
    object_meta: TypeId,
    patterns: HashMap<String, Pattern>,
    budget: PatternBudget,
    /// How many rules of `x-kubernetes-validations` there are.
    rules: usize,
}

impl Compiler {
    fn new(object_meta: Option<(&Table, TypeId)>) -> Self {
        let mut table = Table::new();
        let object_meta = match object_meta {
            Some((from, id)) => table.import(from, id),
            None => table.add(Type::of(Shape::Any)),
        };
        Self {
            table,
            object_meta,
            patterns: HashMap::new(),
            budget: PatternBudget::default(),
            rules: 0,
        }
    }

    /// The root is an embedded resource whose `metadata` is the built-in one whatever the schema says.
    fn root(&mut self, schema: Schema<'_>) -> Result<TypeId, CompileError> {
        let mut fields = Vec::new();
        for (name, property) in schema.properties() {
            if name != "metadata" {
                fields.push(Field::new(name, self.node(property)?));
            }
        }
        let shape = self.object(schema, fields, Embedded::Yes);
        let types = schema.ty().is_empty().then(Vec::new);
        self.finish(schema, shape, types)
    }

    fn node(&mut self, schema: Schema<'_>) -> Result<TypeId, CompileError> {
        let any = Some(Vec::new());
        let (shape, types) = match (schema.is_int_or_string(), JsonType::parse(schema.ty())) {
            (true, _) => (Shape::Scalar(Scalar::IntOrString), None),
            (_, Some(JsonType::Object)) => (self.object_shape(schema)?, None),
            (_, Some(JsonType::Array)) => (self.list_shape(schema)?, None),
            (_, Some(scalar)) => (Shape::Scalar(scalar_of(scalar, schema)), None),
            (_, None) if schema.has_properties() => (self.object_shape(schema)?, any),
            (_, None) if schema.items().is_some() => (self.list_shape(schema)?, any),
            (_, None) => (Shape::Any, None),
        };
        self.finish(schema, shape, types)
    }

    fn finish(
        &mut self,
        schema: Schema<'_>,
        shape: Shape,
        types: Option<Vec<JsonType>>,
    ) -> Result<TypeId, CompileError> {
        let rules = self.own_rules(schema, types)?;
        Ok(self.table.add(Type {
            name: None,
            shape,
            nullable: schema.flag("nullable"),
            default: schema.raw("default").cloned(),
            rules: rules.map(Box::new),
        }))
    }

    fn object_shape(&mut self, schema: Schema<'_>) -> Result<Shape, CompileError> {
        let mut fields = Vec::new();
        for (name, property) in schema.properties() {
            fields.push(Field::new(name, self.node(property)?));
        }
        if !fields.is_empty() || schema.is_embedded() {
            let embedded = if schema.is_embedded() {
                Embedded::Yes
            } else {
                Embedded::No
            };
            return Ok(self.object(schema, fields, embedded));
        }
        let value = match schema.additional() {
            AdditionalProperties::Schema(value) => self.node(value)?,
            AdditionalProperties::Allowed => self.unspecified(),
            _ => return Ok(self.object(schema, fields, Embedded::No)),
        };
        let atomic = schema.map_type() == Some("atomic");
        Ok(Shape::Map { value, atomic })
    }

    fn object(&mut self, schema: Schema<'_>, mut fields: Vec<Field>, embedded: Embedded) -> Shape {
        if embedded == Embedded::Yes {
            for name in ["apiVersion", "kind"] {
                if !fields.iter().any(|f| *f.name == *name) {
                    fields.push(Field::new(name, self.type_meta()));
                }
            }
            if !fields.iter().any(|f| *f.name == *"metadata") {
                fields.push(Field::new("metadata", self.object_meta));
            }
            fields.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let required: HashSet<&str> = schema.texts("required").collect();
        for field in &mut fields {
            field.required = required.contains(&*field.name);
        }
        let mut object = Struct::new(fields);
        object.atomic = schema.map_type() == Some("atomic");
        object.preserve_unknown = schema.preserves_unknown();
        object.embedded_resource = embedded == Embedded::Yes;
        Shape::Struct(object)
    }

    fn list_shape(&mut self, schema: Schema<'_>) -> Result<Shape, CompileError> {
        let item = match schema.items() {
            Some(item) => self.node(item)?,
            None => self.table.add(Type::of(Shape::Any)),
        };
        let kind = match schema.list_type() {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(boxed(schema, "x-kubernetes-list-map-keys")),
            _ => ListKind::Atomic,
        };
        Ok(Shape::List(List { item, kind }))
    }

    /// `apiVersion` or `kind` that the schema does not mention: a string, but checked elsewhere.
    fn type_meta(&mut self) -> TypeId {
        let mut ty = Type::of(Shape::Scalar(Scalar::String));
        ty.rules = Some(Box::new(anything()));
        self.table.add(ty)
    }

    /// A value below `additionalProperties: true`: of any type, but objects in it have no known fields.
    fn unspecified(&mut self) -> TypeId {
        let mut ty = Type::of(Shape::Struct(Struct::default()));
        ty.nullable = true;
        ty.rules = Some(Box::new(anything()));
        self.table.add(ty)
    }

    /// The rules of a node of the structure, or none when its shape says it all.
    fn own_rules(
        &mut self,
        schema: Schema<'_>,
        types: Option<Vec<JsonType>>,
    ) -> Result<Option<Rules>, CompileError> {
        const KEYWORDS: [&str; 21] = [
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "pattern",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "enum",
            "format",
            "required",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "x-kubernetes-validations",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "additionalProperties",
        ];
        if types.is_none() && !KEYWORDS.iter().any(|k| schema.raw(k).is_some()) {
            return Ok(None);
        }
        let mut rules = self.rules(schema)?;
        rules.types = types;
        let expressions = schema.list("x-kubernetes-validations").iter();
        rules.expressions = expressions.map(|rule| validation(schema, rule)).collect();
        self.rules += rules.expressions.len();
        Ok(Some(rules))
    }

    fn rules(&mut self, schema: Schema<'_>) -> Result<Rules, CompileError> {
        let size = |keyword| schema.size(keyword).map(|n| n.max(0) as u64);
        let mut rules = Rules {
            minimum: schema.number("minimum"),
            exclusive_minimum: schema.flag("exclusiveMinimum"),
            maximum: schema.number("maximum"),
            exclusive_maximum: schema.flag("exclusiveMaximum"),
            multiple_of: schema.number("multipleOf"),
            min_length: size("minLength"),
            max_length: size("maxLength"),
            min_items: size("minItems"),
            max_items: size("maxItems"),
            min_properties: size("minProperties"),
            max_properties: size("maxProperties"),
            pattern: self.pattern(schema.text("pattern"))?,
            format: formats::supported(schema.ty(), schema.text("format")),
            required: boxed(schema, "required"),
            ..Rules::default()
        };
        let values = schema.list("enum");
        rules.one_of_values = (!values.is_empty()).then(|| values.to_vec());
        rules.additional = match schema.additional() {
            AdditionalProperties::Allowed => Additional::Allowed,
            AdditionalProperties::Forbidden => Additional::Forbidden,
            _ => Additional::Unset,
        };
        rules.all_of = self.branches(schema, "allOf")?;
        rules.any_of = self.branches(schema, "anyOf")?;
        rules.one_of = self.branches(schema, "oneOf")?;
        rules.not = schema
            .not()
            .map(|s| self.nested(s))
            .transpose()?
            .map(Box::new);
        Ok(rules)
    }

    fn branches(&mut self, schema: Schema<'_>, keyword: &str) -> Result<Vec<Rules>, CompileError> {
        schema.branches(keyword).map(|s| self.nested(s)).collect()
    }

    /// Rules inside a combinator.
    fn nested(&mut self, schema: Schema<'_>) -> Result<Rules, CompileError> {
        let mut rules = self.rules(schema)?;
        rules.types = JsonType::parse(schema.ty()).map(|ty| vec![ty]);
        for (name, property) in schema.properties() {
            rules
                .properties
                .push((name.as_str().into(), self.nested(property)?));
        }
        rules.items = schema
            .items()
            .map(|s| self.nested(s))
            .transpose()?
            .map(Box::new);
        Ok(rules)
    }

    fn pattern(&mut self, source: &str) -> Result<Option<Pattern>, CompileError> {
        if source.is_empty() {
            return Ok(None);
        }
        if let Some(pattern) = self.patterns.get(source) {
            return Ok(Some(pattern.clone()));
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return Err(CompileError::Patterns);
        }
        let pattern = self.budget.compile(source).map_err(CompileError::Pattern)?;
        self.patterns.insert(source.to_owned(), pattern.clone());
        Ok(Some(pattern))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Embedded {
    Yes,
    No,
}

fn anything() -> Rules {
    Rules {
        types: Some(Vec::new()),
        ..Rules::default()
    }
}

fn validation(schema: Schema<'_>, rule: &Value) -> Validation {
    let text = |name: &str| rule[name].as_str().unwrap_or("").to_owned();
    let field_path = text("fieldPath");
    let blamed = field_path::resolve(&field_path, schema, Brackets::Allowed);
    Validation {
        rule: text("rule"),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: rule["reason"].as_str().map(str::to_owned),
        blamed: blamed.map(|(path, _)| path).unwrap_or_default(),
        field_path,
        optional_old_self: rule["optionalOldSelf"].as_bool(),
    }
}

fn scalar_of(ty: JsonType, schema: Schema<'_>) -> Scalar {
    match ty {
        JsonType::Integer if schema.text("format") == "int32" => Scalar::Int32,
        JsonType::Integer => Scalar::Int64,
        JsonType::Number => Scalar::Double,
        JsonType::Boolean => Scalar::Bool,
        JsonType::String | JsonType::Array | JsonType::Object => Scalar::String,
    }
}

fn boxed(schema: Schema<'_>, keyword: &str) -> Vec<Box<str>> {
    schema.texts(keyword).map(Into::into).collect()
}
