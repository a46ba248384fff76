//! The columns of a version in `kubectl get`: headings and cells.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::definition::{Column, Version};
use super::jsonpath::JsonPath;
use crate::duration;
use crate::go::{self, Num};

const NAME_DESCRIPTION: &str = "Name of the object.";

const AGE_DESCRIPTION: &str = "Time since the object was created.";

/// One entry of `columnDefinitions` in a `Table`. Serializes as the API server writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnDefinition {
    /// The heading of the column.
    pub name: String,
    /// OpenAPI type of the cells.
    #[serde(rename = "type")]
    pub column_type: String,
    /// OpenAPI format of the cells.
    pub format: String,
    /// The help text of the column.
    pub description: String,
    /// Columns above 0 are shown by `-o wide` only.
    pub priority: i64,
}

/// The columns of a version.
#[derive(Debug, Clone)]
pub struct Columns {
    /// `Name` first; one more than there are `paths`.
    definitions: Vec<ColumnDefinition>,
    paths: Vec<JsonPath>,
}

impl Columns {
    /// The columns that a version declares after its name, or its age when it declares none. A path that cannot be
    /// read ends the columns, as in the API server.
    pub fn new(version: &Version) -> Self {
        let age = [Column {
            name: "Age".to_owned(),
            column_type: "date".to_owned(),
            description: AGE_DESCRIPTION.to_owned(),
            json_path: ".metadata.creationTimestamp".to_owned(),
            ..Column::default()
        }];
        let declared = if version.columns.is_empty() {
            &age[..]
        } else {
            &version.columns
        };
        let mut columns = Self {
            definitions: vec![name_column()],
            paths: Vec::new(),
        };
        for column in declared {
            let Ok(path) = JsonPath::parse(&column.json_path) else {
                break;
            };
            columns.paths.push(path);
            columns.definitions.push(definition(column));
        }
        columns
    }

    /// Returns the headings and types of all columns.
    pub fn definitions(&self) -> &[ColumnDefinition] {
        &self.definitions
    }

    /// The cells of an object's row; ages are as of `now`.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or("");
        let mut cells = vec![Value::from(name)];
        for (path, definition) in self.paths.iter().zip(&self.definitions[1..]) {
            let value = path.find(object).into_iter().next();
            cells.push(value.map_or(Value::Null, |value| {
                cell(&definition.column_type, value, now)
            }));
        }
        cells
    }
}

fn name_column() -> ColumnDefinition {
    ColumnDefinition {
        name: "Name".to_owned(),
        column_type: "string".to_owned(),
        format: "name".to_owned(),
        description: NAME_DESCRIPTION.to_owned(),
        priority: 0,
    }
}

fn definition(column: &Column) -> ColumnDefinition {
    let description = if column.description.is_empty() {
        format!(
            "Custom resource definition column (in JSONPath format): {}",
            column.json_path
        )
    } else {
        column.description.clone()
    };
    ColumnDefinition {
        name: column.name.clone(),
        column_type: column.column_type.clone(),
        format: column.format.clone(),
        description,
        priority: column.priority,
    }
}

/// A value as a cell of a type; null when it does not fit.
fn cell(column_type: &str, value: &Value, now: Timestamp) -> Value {
    match (column_type, value) {
        ("string", value) => Value::from(text(value)),
        ("integer", Value::Number(n)) => match Num::of(n) {
            Num::Int(n) => Value::from(n),
            Num::Float(f) => Value::from(f as i64),
        },
        ("number", Value::Number(n)) => number(Num::of(n)),
        ("boolean", Value::Bool(b)) => Value::from(*b),
        ("date", Value::String(text)) => Value::from(age(text, now)),
        _ => Value::Null,
    }
}

/// Whole numbers are written without a fraction, also in columns of floats.
fn number(n: Num) -> Value {
    match n {
        Num::Int(n) => Value::from(n),
        Num::Float(f) if f.fract() == 0.0 && f.abs() < 1e15 => Value::from(f as i64),
        Num::Float(f) => Value::from(f),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        other => go::display(other),
    }
}

/// How long ago a time was.
pub(crate) fn age(time: &str, now: Timestamp) -> String {
    if time.is_empty() || time == "null" {
        return "<unknown>".to_owned();
    }
    match time.parse::<Timestamp>() {
        Ok(then) => duration::human(now.duration_since(then).as_secs()),
        Err(_) => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::definition::Definition;
    use super::super::tests::bars;
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T19:19:26Z".parse().expect("a time")
    }

    fn version(columns: Value) -> Version {
        let crd =
            json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": columns}]}});
        Definition::parse(&crd).versions.remove(0)
    }

    #[test]
    fn version_without_columns_shows_name_and_age() {
        let columns = Columns::new(&version(json!([])));
        let names: Vec<&str> = columns
            .definitions()
            .iter()
            .map(|d| d.name.as_str())
            .collect();
        assert_eq!(names, ["Name", "Age"]);
        assert_eq!(columns.definitions()[1].description, AGE_DESCRIPTION);
        let object =
            json!({"metadata": {"name": "g1", "creationTimestamp": "2026-11-15T19:19:16Z"}});
        assert_eq!(columns.cells(&object, now()), [json!("g1"), json!("10s")]);
    }

    #[test]
    fn declared_columns_follow_the_name() {
        let columns = Columns::new(&Definition::parse(&bars()).versions[0]);
        assert_eq!(
            serde_json::to_string(&columns.definitions()[1]).expect("serializes"),
            "{\"name\":\"Num\",\"type\":\"integer\",\"format\":\"\",\"description\":\"Custom resource definition column \
             (in JSONPath format): .spec.num\",\"priority\":0}"
        );
        let with = json!({"metadata": {"name": "b1"}, "spec": {"num": 6}});
        assert_eq!(columns.cells(&with, now()), [json!("b1"), json!(6)]);
        let without = json!({"metadata": {"name": "b2"}});
        assert_eq!(columns.cells(&without, now()), [json!("b2"), json!(null)]);
    }

    #[test]
    fn cells_take_the_type_of_their_column() {
        let cases = [
            ("integer", json!(1.9), json!(1)),
            ("integer", json!("1"), json!(null)),
            ("number", json!(2), json!(2)),
            ("number", json!(0.5), json!(0.5)),
            ("boolean", json!(true), json!(true)),
            ("boolean", json!("true"), json!(null)),
            ("string", json!("x"), json!("x")),
            ("string", json!(5), json!("5")),
            ("string", json!(["a", 1]), json!("[\"a\",1]")),
            ("string", json!({"a": true}), json!("{\"a\":true}")),
            ("date", json!("2026-11-15T19:14:26Z"), json!("5m")),
            ("date", json!("soon"), json!("<invalid>")),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!(5), json!(null)),
        ];
        for (ty, value, expect) in cases {
            let columns = Columns::new(&version(
                json!([{"name": "C", "type": ty, "jsonPath": ".v"}]),
            ));
            let cells = columns.cells(&json!({"metadata": {"name": "a"}, "v": value}), now());
            assert_eq!(cells[1], expect, "{ty} of {value}");
        }
    }

    #[test]
    fn unreadable_path_ends_the_columns() {
        let columns = json!([
            {"name": "A", "type": "string", "jsonPath": ".a"},
            {"name": "B", "type": "string", "jsonPath": ".b["},
            {"name": "C", "type": "string", "jsonPath": ".c"},
        ]);
        let columns = Columns::new(&version(columns));
        assert_eq!(columns.definitions().len(), 2);
        assert_eq!(
            columns
                .cells(&json!({"metadata": {"name": "x"}, "a": "1"}), now())
                .len(),
            2
        );
    }
}
