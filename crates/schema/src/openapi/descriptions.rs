//! What Kubernetes says of its types and fields, for `kubectl explain`.
//!
//! The texts are kept compressed and unpacked for each document, so that a server that nobody asks pays nothing for them
//! but two hundred kilobytes of its program.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

/// A block for each type, sorted by name: `name<TAB>description`, then ` field<TAB>description` for each field.
/// `\n` and `\\` stand for a line break and a backslash.
static PACKED: &[u8] = include_bytes!("../../data/kubernetes-1.37.descriptions.gz");

/// The texts of all built-in types.
pub(super) struct Descriptions {
    text: String,
    /// Where the lines of each type are.
    types: HashMap<Box<str>, Range<usize>>,
}

impl Descriptions {
    /// Unpacks them.
    pub(super) fn unpack() -> Self {
        let mut text = String::new();
        GzDecoder::new(PACKED)
            .read_to_string(&mut text)
            .expect("the descriptions are packed by xtask and checked by a test");
        let mut types: HashMap<Box<str>, Range<usize>> = HashMap::new();
        let mut at = 0;
        let mut current: Option<&str> = None;
        for line in text.split_inclusive('\n') {
            if !line.starts_with([' ', '#']) {
                current = line.split('\t').next();
            }
            let end = at + line.len();
            if let Some(name) = current {
                types.entry(name.into()).or_insert(at..at).end = end;
            }
            at = end;
        }
        Self { text, types }
    }

    /// Returns the descriptions of a type and its fields.
    pub(super) fn of(&self, name: &str) -> Option<About<'_>> {
        let lines = &self.text[self.types.get(name)?.clone()];
        Some(About(lines))
    }
}

/// The descriptions of the fields that every object has, custom ones too.
pub(super) struct Common {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) metadata: String,
}

impl Common {
    /// The texts, which are kept from the first use on.
    pub(super) fn get() -> &'static Self {
        static COMMON: OnceLock<Common> = OnceLock::new();
        COMMON.get_or_init(|| {
            let descriptions = Descriptions::unpack();
            let any = descriptions.of("io.k8s.api.core.v1.ConfigMap");
            let text = |field: &str| any.and_then(|any| any.field(field)).unwrap_or_default();
            Self {
                api_version: text("apiVersion"),
                kind: text("kind"),
                metadata: text("metadata"),
            }
        })
    }
}

/// The descriptions of one type and its fields.
#[derive(Clone, Copy)]
pub(super) struct About<'a>(&'a str);

impl About<'_> {
    /// The description of the type itself.
    pub(super) fn itself(self) -> Option<String> {
        let (_, text) = self.0.lines().next()?.split_once('\t')?;
        restore(text)
    }

    /// The description of a field.
    pub(super) fn field(self, name: &str) -> Option<String> {
        let mut fields = self
            .0
            .lines()
            .skip(1)
            .filter_map(|l| l[1..].split_once('\t'));
        let (_, text) = fields.find(|(field, _)| *field == name)?;
        restore(text)
    }
}

/// A text with its line breaks; none when it is empty.
fn restore(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let mut restored = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        restored.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                other => other.unwrap_or('\\'),
            },
            c => c,
        });
    }
    Some(restored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Shape, Table};

    #[test]
    fn every_field_of_the_table_is_described() {
        let (descriptions, table) = (Descriptions::unpack(), Table::builtin());
        let mut missing = Vec::new();
        for kind in table.kinds() {
            let ty = table.get(kind.ty);
            let (Some(name), Shape::Struct(s)) = (&ty.name, &ty.shape) else {
                continue;
            };
            let about = descriptions.of(name).expect("a description");
            let fields = s.fields().iter().map(|field| &*field.name);
            missing.extend(
                fields
                    .filter(|f| about.field(f).is_none())
                    .map(|f| format!("{name}.{f}")),
            );
        }
        // Upstream says nothing of these.
        missing
            .retain(|field| !field.ends_with(".metadata") && !field.ends_with("WatchEvent.type"));
        assert_eq!(missing, Vec::<String>::new());
        let pod = descriptions
            .of("io.k8s.api.core.v1.PodSpec")
            .expect("there");
        assert!(
            pod.field("restartPolicy")
                .expect("there")
                .starts_with("Restart policy for all containers")
        );
        assert!(descriptions.of("io.k8s.api.core.v1.Nothing").is_none());
    }

    #[test]
    fn line_breaks_survive() {
        assert_eq!(restore(r"a\nb\\n").as_deref(), Some("a\nb\\n"));
        assert_eq!(restore(""), None);
    }
}
