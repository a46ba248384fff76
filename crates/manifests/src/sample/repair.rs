//! Changes an object, one or two values at a time, until it is valid.

use kubewright_schema::FieldError;
use kubewright_schema::crd::blocks_expressions;
use serde_json::{Map, Value, json};

use super::Checker;
use super::branches;
use super::generate::{Extent, Generator, is_required, properties};
use super::literals::Literals;

/// The most changes that are considered in one round.
const MAX_CHANGES: usize = 400;

/// One value to set, or to leave out.
#[derive(Clone, Debug)]
struct Change {
    pointer: String,
    value: Option<Value>,
}

/// How bad an object is: whether its rules cannot even be evaluated, and how many errors it has.
type Badness = (bool, usize);

/// A valid object near this one, found with so many validations at most. The value at the pointer `kept` is not changed.
///
/// # Errors
/// What is wrong with the best object that was found.
pub(super) fn repair(
    checker: &Checker,
    object: Value,
    kept: Option<&str>,
    budget: usize,
) -> Result<Value, Vec<FieldError>> {
    let mut search = Search {
        checker,
        kept,
        literals: Literals::of(&checker.schema),
        left: budget,
    };
    let mut object = object;
    loop {
        let errors = checker.errors(&object, None);
        if errors.is_empty() {
            return Ok(object);
        }
        match search.improve(&object, &errors) {
            Some(better) => object = better,
            None => return Err(errors),
        }
    }
}

struct Search<'a> {
    checker: &'a Checker,
    kept: Option<&'a str>,
    literals: Literals,
    left: usize,
}

impl Search<'_> {
    /// An object with fewer errors: by one change, or else by two.
    fn improve(&mut self, object: &Value, errors: &[FieldError]) -> Option<Value> {
        let changes = self.changes(object);
        let now = badness(errors);
        for change in &changes {
            let Some(changed) = replaced(object, &change.pointer, change.value.as_ref()) else {
                continue;
            };
            if self.is_better(&changed, now)? {
                return Some(changed);
            }
        }
        for (position, first) in changes.iter().enumerate() {
            let Some(once) = replaced(object, &first.pointer, first.value.as_ref()) else {
                continue;
            };
            for second in changes[position + 1..]
                .iter()
                .filter(|c| c.pointer != first.pointer)
            {
                let Some(twice) = replaced(&once, &second.pointer, second.value.as_ref()) else {
                    continue;
                };
                if self.is_better(&twice, now)? {
                    return Some(twice);
                }
            }
        }
        None
    }

    /// Nothing, when it was asked too often.
    fn is_better(&mut self, object: &Value, than: Badness) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        Some(badness(&self.checker.errors(object, None)) < than)
    }

    fn changes(&self, object: &Value) -> Vec<Change> {
        let mut changes = Vec::new();
        self.visit(&self.checker.schema, object, "", &mut changes);
        for text in &self.literals.texts {
            changes.push(Change {
                pointer: "/metadata/name".to_owned(),
                value: Some(json!(text)),
            });
        }
        changes.truncate(MAX_CHANGES);
        if let Some(kept) = self.kept {
            changes.retain(|change| !overlap(&change.pointer, kept));
        }
        changes
    }

    /// The depth of the object is that of the schema it was made from.
    fn visit(&self, schema: &Value, value: &Value, pointer: &str, changes: &mut Vec<Change>) {
        if changes.len() >= MAX_CHANGES {
            return;
        }
        match value {
            Value::Object(fields) => self.visit_fields(schema, fields, pointer, changes),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.visit(
                        &schema["items"],
                        item,
                        &format!("{pointer}/{index}"),
                        changes,
                    );
                }
            }
            scalar => {
                let others = self
                    .alternatives(schema)
                    .into_iter()
                    .filter(|other| other != scalar);
                changes.extend(others.map(|value| Change {
                    pointer: pointer.to_owned(),
                    value: Some(value),
                }));
            }
        }
    }

    fn visit_fields(
        &self,
        schema: &Value,
        fields: &Map<String, Value>,
        pointer: &str,
        changes: &mut Vec<Change>,
    ) {
        let is_root = pointer.is_empty();
        for (name, property) in
            properties(schema).filter(|(name, _)| !(is_root && is_type_meta(name)))
        {
            let below = format!("{pointer}/{}", escape(name));
            match fields.get(name) {
                Some(value) => {
                    if !is_required(schema, name) {
                        changes.push(Change {
                            pointer: below.clone(),
                            value: None,
                        });
                    }
                    self.visit(property, value, &below, changes);
                }
                None if is_root && name == "status" => {}
                None => self.additions(property, name, &below, changes),
            }
        }
    }

    /// Ways to set a field that is not there.
    fn additions(&self, schema: &Value, name: &str, pointer: &str, changes: &mut Vec<Change>) {
        let made = [Extent::Required, Extent::Generous]
            .map(|extent| Generator::new(extent, 0).field(schema, name));
        let mut values = vec![made[0].clone()];
        if made[1] != made[0] {
            values.push(made[1].clone());
        }
        values.extend(self.alternatives(schema));
        values.dedup();
        changes.extend(values.into_iter().map(|value| Change {
            pointer: pointer.to_owned(),
            value: Some(value),
        }));
    }

    fn alternatives(&self, schema: &Value) -> Vec<Value> {
        let schema = &*branches::take(schema, 0);
        if let Some(values) = schema["enum"].as_array() {
            return values.clone();
        }
        match schema["type"].as_str() {
            Some("boolean") => vec![json!(true), json!(false)],
            Some("integer" | "number") => self.numbers(schema),
            Some("string") => {
                let usual =
                    ["example", "1h", "1s", "1Gi", "https://example.com"].map(str::to_owned);
                self.literals
                    .texts
                    .iter()
                    .cloned()
                    .chain(usual)
                    .map(Value::from)
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn numbers(&self, schema: &Value) -> Vec<Value> {
        let bounds = ["minimum", "maximum"]
            .iter()
            .filter_map(|key| schema[key].as_f64());
        let bounds = bounds
            .filter(|bound| bound.abs() < 9e15)
            .map(|bound| bound as i64);
        let usual = [0, 1, 2, 3, 10, 100];
        let mut numbers: Vec<i64> = self
            .literals
            .numbers
            .iter()
            .copied()
            .chain(bounds)
            .chain(usual)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(Value::from).collect()
    }
}

fn badness(errors: &[FieldError]) -> Badness {
    (blocks_expressions(errors), errors.len())
}

fn is_type_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Whether one of two places is the other or within it.
fn overlap(one: &str, other: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    within(one, other) || within(other, one)
}

/// The object with another value at a JSON pointer, or with none. None if there is no such place.
pub fn replaced(object: &Value, pointer: &str, value: Option<&Value>) -> Option<Value> {
    let mut changed = object.clone();
    let (parent, last) = pointer.rsplit_once('/')?;
    let name = last.replace("~1", "/").replace("~0", "~");
    match (changed.pointer_mut(parent)?, value) {
        (Value::Object(fields), Some(value)) => {
            fields.insert(name, value.clone());
        }
        (Value::Object(fields), None) => {
            fields.remove(&name);
        }
        (Value::Array(items), Some(value)) => {
            *items.get_mut(name.parse::<usize>().ok()?)? = value.clone();
        }
        _ => return None,
    }
    Some(changed)
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
