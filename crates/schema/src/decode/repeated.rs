//! Finds keys that stand more than once in their mapping, in the words of Go's YAML reader, which names their lines.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{ParseError, yaml};

/// A key that stands in its mapping already. `Display` uses the words of Go's YAML reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedKey {
    key: String,
    /// Where its value begins.
    line: u64,
}

impl fmt::Display for RepeatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: key {:?} already set in map",
            self.line, self.key
        )
    }
}

/// The repeated keys of a document in YAML or JSON, in the order in which Go finds them: those within a value before the
/// key that it belongs to (`yaml.v2: decoder.setMapIndex`).
///
/// # Errors
/// When the document is not well-formed.
pub fn repeated_keys(bytes: &[u8]) -> Result<Vec<RepeatedKey>, ParseError> {
    let keys: Keys = yaml::run(PhantomData, bytes)?;
    let mut found = Vec::new();
    keys.collect(&mut found);
    Ok(found)
}

/// The keys of a document and the lines of their values.
enum Keys {
    Leaf,
    List(Vec<Keys>),
    Map(Vec<(String, Spanned<Keys>)>),
}

impl Keys {
    /// Documents are not nested deeply: the reader has a limit.
    fn collect(&self, found: &mut Vec<RepeatedKey>) {
        match self {
            Keys::Leaf => {}
            Keys::List(items) => items.iter().for_each(|item| item.collect(found)),
            Keys::Map(entries) => {
                let mut seen = HashSet::new();
                for (key, value) in entries {
                    value.value.collect(found);
                    if !seen.insert(key) {
                        found.push(RepeatedKey {
                            key: key.clone(),
                            line: value.referenced.line(),
                        });
                    }
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_none<E>(self) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Keys, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Keys::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Keys, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Keys::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(document: &str) -> Vec<String> {
        let found = repeated_keys(document.as_bytes()).expect("it is well-formed");
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn repeated_keys_have_the_lines_of_their_values() {
        let document = "spec:\n  foo: a\n  foo: b\n  list:\n  - x: 1\n    x: 2\nspec:\n  bar: c\n";
        assert_eq!(
            texts(document),
            [
                r#"line 3: key "foo" already set in map"#,
                r#"line 6: key "x" already set in map"#,
                r#"line 8: key "spec" already set in map"#,
            ]
        );
        assert_eq!(texts("a: 1\nb: {a: 1}\n"), [""; 0]);
    }

    #[test]
    fn json_has_lines_too() {
        let document = "{\"a\": {\"b\": 1,\n\"b\": 2}, \"c\": null, \"c\": true}";
        assert_eq!(
            texts(document),
            [
                r#"line 2: key "b" already set in map"#,
                r#"line 2: key "c" already set in map"#,
            ]
        );
    }
}
