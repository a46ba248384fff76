//! Made-up values of any type, for tests.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::types::{Scalar, Shape, Table, TypeId};

/// Makes up values of a type from a stream of numbers.
pub(crate) struct Inventor {
    pub(crate) state: u64,
}

impl Inventor {
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 8] = ["a", "<&>", "\u{2028}", "\n\"\\", "é", "日本", "\u{1}", "😀"];
        (0..self.below(4))
            .map(|_| PIECES[self.below(8) as usize])
            .collect()
    }

    pub(crate) fn value(&mut self, ty: TypeId, depth: usize) -> Value {
        let table = Table::builtin();
        let room = depth > 0;
        match &table.get(ty).shape {
            Shape::Struct(s) => {
                let mut map = Map::new();
                for field in s.fields() {
                    // Full near the root, sparse further down: values that are deep but not endless.
                    if room && self.below(depth as u64) > 1 {
                        map.insert(field.name.to_string(), self.value(field.ty, depth - 1));
                    }
                }
                Value::Object(map)
            }
            Shape::Map { value, .. } => {
                let count = if room { self.below(3) } else { 0 };
                (0..count)
                    .map(|_| (self.text(), self.value(*value, depth - 1)))
                    .collect()
            }
            Shape::List(list) => {
                let count = if room { self.below(3) } else { 0 };
                (0..count)
                    .map(|_| self.value(list.item, depth - 1))
                    .collect()
            }
            Shape::Any => match table.forms(ty) {
                [] => json!({ self.text(): [1, null, {"b": self.text()}] }),
                forms => {
                    let form = forms[self.below(forms.len() as u64) as usize];
                    match self.value(form, depth.saturating_sub(1)) {
                        // Nobody reads one here: Go does not tell it from none.
                        Value::Array(items) if items.is_empty() => json!({}),
                        value => value,
                    }
                }
            },
            Shape::Scalar(scalar) => self.scalar(*scalar),
        }
    }

    fn scalar(&mut self, scalar: Scalar) -> Value {
        match scalar {
            Scalar::String => json!(self.text()),
            Scalar::Bytes => json!("aGVsbG8="),
            Scalar::Bool => json!(self.below(2) == 0),
            Scalar::Int32 => json!(self.below(1 << 31) as i32 - (1 << 30)),
            Scalar::Int64 => json!(self.state as i64),
            Scalar::Double => json!(self.below(1000) as f64 + 0.25),
            Scalar::Quantity => json!("100m"),
            Scalar::IntOrString if self.below(2) == 0 => json!(self.below(1 << 31)),
            Scalar::IntOrString => json!("25%"),
            Scalar::Time => json!("2024-02-29T12:00:00Z"),
            Scalar::MicroTime => json!("2024-02-29T12:00:00.123456Z"),
        }
    }
}

/// The types of all kinds, each once.
pub(crate) fn kinds() -> Vec<TypeId> {
    let kinds: BTreeSet<TypeId> = Table::builtin()
        .kinds()
        .iter()
        .map(|kind| kind.ty)
        .collect();
    kinds.into_iter().collect()
}
