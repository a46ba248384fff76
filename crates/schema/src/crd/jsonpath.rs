//! JSONPath as CRDs use it: `.spec.x`, `['a.b']`, `.a\.b`, `[0]`, `[*]`, `[1:3]`, `[?(@.type=="Ready")].status`.
//!
//! Deliberately absent: recursive descent (`..`), unions and ranges over templates.

mod parser;

use std::cmp::Ordering;

use serde_json::Value;

use self::parser::Parser;

/// Longest path, in bytes.
const MAX_LENGTH: usize = 4096;
/// Most steps in a path, those of its filters included.
const MAX_STEPS: usize = 64;
/// Most values that a path yields; what comes after is cut off.
const MAX_RESULTS: usize = 10_000;

/// A parsed JSON path, as columns and field selectors use it.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// Why a path is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonPathError {
    /// Too long, or with too many steps.
    #[error("path is longer than {MAX_LENGTH} bytes or {MAX_STEPS} steps")]
    Long,
    /// Something else is expected at a place.
    #[error("expected {expected} at byte {at}")]
    Syntax {
        /// What should be there.
        expected: &'static str,
        /// Where, counted in bytes.
        at: usize,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Wildcard,
    Filter(Box<Filter>),
}

#[derive(Debug, Clone, PartialEq)]
enum Filter {
    Exists(Operand),
    Compare {
        left: Operand,
        operator: Operator,
        right: Operand,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path; `{…}` around it and `$` before it may be left out.
    ///
    /// # Errors
    /// When the text is not a path of the supported kind, or beyond the limits.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        if text.len() > MAX_LENGTH {
            return Err(JsonPathError::Long);
        }
        let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        Parser::new(inner.unwrap_or(text)).run()
    }

    /// The values that the path leads to, in order. Missing fields and indexes lead to nothing.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.follow(value, &mut next);
                next.truncate(MAX_RESULTS);
            }
            found = next;
        }
        found
    }
}

impl Step {
    fn follow<'a>(&self, value: &'a Value, out: &mut Vec<&'a Value>) {
        match (self, value) {
            (Step::Field(name), Value::Object(map)) => out.extend(map.get(name)),
            (Step::Index(index), Value::Array(items)) => {
                out.extend(position(*index, items.len()).and_then(|i| items.get(i)));
            }
            (Step::Slice { start, end, step }, Value::Array(items)) => {
                let bound = |bound: Option<i64>, default: usize| match bound {
                    None => default,
                    Some(n) => position(n, items.len()).unwrap_or(0).min(items.len()),
                };
                let (start, end) = (bound(*start, 0), bound(*end, items.len()));
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                out.extend(items.iter().take(end).skip(start).step_by(step));
            }
            (Step::Wildcard, Value::Array(items)) => out.extend(items),
            (Step::Wildcard, Value::Object(map)) => {
                out.extend(crate::go::sorted(map).into_iter().map(|(_, value)| value));
            }
            (Step::Filter(filter), Value::Array(items)) => {
                out.extend(items.iter().filter(|item| filter.holds(item)));
            }
            _ => {}
        }
    }
}

/// A negative index counts from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 {
        index.checked_add(length)?
    } else {
        index
    };
    usize::try_from(index).ok()
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        match self {
            Filter::Exists(operand) => !operand.values(item).is_empty(),
            Filter::Compare {
                left,
                operator,
                right,
            } => match (left.values(item).as_slice(), right.values(item).as_slice()) {
                ([left], [right]) => operator.holds(left, right),
                _ => false,
            },
        }
    }
}

impl Operand {
    fn values<'a>(&'a self, item: &'a Value) -> Vec<&'a Value> {
        match self {
            Operand::Path(path) => path.find(item),
            Operand::Literal(value) => vec![value],
        }
    }
}

impl Operator {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (a, b) => (a == b).then_some(Ordering::Equal),
        };
        match self {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::NotEqual => order != Some(Ordering::Equal),
            Operator::Less => order.is_some_and(Ordering::is_lt),
            Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
            Operator::Greater => order.is_some_and(Ordering::is_gt),
            Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, expect: Value) {
        let object = json!({
            "spec": {"x": 1, "list": [10, 20, 30], "a.b": "dotted", "map": {"b": 2, "a": 1}},
            "metadata": {"annotations": {"ex.io/key": "v"}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 2},
                {"type": "Synced", "status": "False"},
            ]},
        });
        let path = JsonPath::parse(path).expect("path parses");
        assert_eq!(json!(path.find(&object)), expect);
    }

    #[test]
    fn paths_lead_to_values() {
        check(".spec.x", json!([1]));
        check("{.spec.x}", json!([1]));
        check("$.spec.x", json!([1]));
        check(".spec.missing.deeper", json!([]));
        check(".spec.list[0]", json!([10]));
        check(".spec.list[-1]", json!([30]));
        check(".spec.list[9]", json!([]));
        check(".spec.list[*]", json!([10, 20, 30]));
        check(".spec.list[1:]", json!([20, 30]));
        check(".spec.list[:2]", json!([10, 20]));
        check(".spec.list[0:3:2]", json!([10, 30]));
        check(".spec['a.b']", json!(["dotted"]));
        check(r".spec.a\.b", json!(["dotted"]));
        check(r".metadata.annotations.ex\.io/key", json!(["v"]));
        check(".spec.map.*", json!([1, 2]));
        check(
            ".status.conditions[?(@.type==\"Ready\")].status",
            json!(["True"]),
        );
        check(
            ".status.conditions[?(@.type=='Ready')].status",
            json!(["True"]),
        );
        check(
            ".status.conditions[?(@.type != \"Ready\")].status",
            json!(["False"]),
        );
        check(".status.conditions[?(@.n)].type", json!(["Ready"]));
        check(".status.conditions[?(@.n>1)].type", json!(["Ready"]));
        check(".status.conditions[?(@.n>=3)].type", json!([]));
        check(".status.conditions[*].type", json!(["Ready", "Synced"]));
        check(
            ".",
            json!([{
                "spec": {"x": 1, "list": [10, 20, 30], "a.b": "dotted", "map": {"b": 2, "a": 1}},
                "metadata": {"annotations": {"ex.io/key": "v"}},
                "status": {"conditions": [
                    {"type": "Ready", "status": "True", "n": 2},
                    {"type": "Synced", "status": "False"},
                ]},
            }]),
        );
    }

    #[test]
    fn faults_name_what_is_missing_and_where() {
        let cases = [
            (".spec.", "expected a field name at byte 6"),
            ("spec", "expected `.`, `[` or the end at byte 0"),
            (".a[", "expected an index at byte 3"),
            (".a[0", "expected ] at byte 4"),
            (
                ".a['b]",
                "expected a string with its closing quote at byte 3",
            ),
            (".a[?(@.b==)]", "expected a value at byte 10"),
            ("..a", "expected a field name at byte 1"),
        ];
        for (path, expect) in cases {
            let error = JsonPath::parse(path).expect_err("path is refused");
            assert_eq!(error.to_string(), expect, "{path}");
        }
        assert_eq!(JsonPath::parse(&".a".repeat(65)), Err(JsonPathError::Long));
        assert_eq!(JsonPath::parse(&"a".repeat(5000)), Err(JsonPathError::Long));
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses_or_fails_without_panic(text in "[.\\[\\]?()@='\"a0:*\\\\é-]{0,24}") {
            if let Ok(path) = JsonPath::parse(&text) {
                path.find(&json!({"a": [{"a": 0}, [0]]}));
            }
        }
    }
}
