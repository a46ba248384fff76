//! CEL: compiled against variables of every type, and as a rule of a schema, then evaluated within a budget.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use kubewright_schema::cel::{Expression, List, Text, Type, Value, Variable};
use kubewright_schema::crd::{CompiledVersion, Version, validate};
use serde_json::{Value as Json, json};

use super::{Verdict, start};

/// What evaluating may cost.
const BUDGET: u64 = 200_000;

static VARIABLES: LazyLock<Vec<Variable>> = LazyLock::new(|| {
    vec![
        Variable::new("x", Type::Int),
        Variable::new("d", Type::Double),
        Variable::new("s", Type::String),
        Variable::new("b", Type::Bool),
        Variable::new("l", Type::List(Arc::new(Type::Int))),
        Variable::new("any", Type::Dyn),
    ]
});

pub(super) fn read(input: &[u8]) -> Verdict {
    let Ok(source) = str::from_utf8(input) else {
        return Verdict::refused("not text");
    };
    let by_variables = evaluate(source);
    let by_rule = rule(source);
    Verdict(format!("{} {by_rule}", by_variables.0))
}

fn evaluate(source: &str) -> Verdict {
    let expression = match Expression::compile(source, &VARIABLES) {
        Ok(expression) => expression,
        Err(error) => return Verdict::refused(start(&error.to_string())),
    };
    let list = [1, 2, 3].map(Value::Int);
    let variables = vec![
        ("x", Value::Int(7)),
        ("d", Value::Double(0.5)),
        ("s", Value::Text(Text::Borrowed("text"))),
        ("b", Value::Bool(true)),
        ("l", Value::List(List::Made(Rc::from(list)))),
        ("any", Value::Null),
    ];
    let (result, _) = expression.evaluate(variables, BUDGET);
    match result {
        Ok(_) => Verdict::accepted(
            format!("{:?}", expression.ty())
                .chars()
                .take(40)
                .collect::<String>(),
        ),
        Err(error) => Verdict::accepted(start(&error.to_string())),
    }
}

/// The expression as a rule of a custom resource.
fn rule(source: &str) -> String {
    let version = Version {
        name: "v1".to_owned(),
        schema: Some(schema(source)),
        ..Version::default()
    };
    let compiled = match CompiledVersion::new(&version, None) {
        Ok(compiled) => compiled,
        Err(error) => return start(&error.to_string()).to_owned(),
    };
    let object = json!({"spec": {
        "count": 3, "name": "web", "ratio": 0.5, "on": true, "tags": ["a", "b"], "at": "2024-01-01T00:00:00Z",
        "labels": {"a": "1"}, "ports": [{"name": "http", "port": 80}], "size": "25%",
    }});
    let errors = validate(&compiled, &object, Some(&object), Vec::new());
    errors
        .first()
        .map(|error| start(&error.to_string()).to_owned())
        .unwrap_or_default()
}

fn schema(rule: &str) -> Json {
    json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [{"rule": rule}],
        "properties": {
            "count": {"type": "integer", "minimum": 0},
            "ratio": {"type": "number"},
            "on": {"type": "boolean"},
            "name": {"type": "string", "maxLength": 20},
            "at": {"type": "string", "format": "date-time"},
            "size": {"x-kubernetes-int-or-string": true},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 10},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "ports": {
                "type": "array", "maxItems": 10,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "port": {"type": "integer", "format": "int32"},
                }},
            },
        },
    }}})
}
