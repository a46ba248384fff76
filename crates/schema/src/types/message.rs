//! The protobuf message of a struct: which field of the struct a field number means.

use super::{Field, Wire};

/// Fields of a message, sorted by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    entries: Vec<(u32, Entry)>,
}

/// What a field of a message is.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// The field of the struct at this position.
    Field(u16),
    /// A message whose fields are fields of the same struct in JSON.
    Inlined(Message),
}

impl Message {
    /// The message of a struct with these fields. `wires` holds positions of fields that lie in inlined messages.
    pub(crate) fn new(fields: &[Field], wires: &[(u16, Wire)]) -> Self {
        let mut message = Self::default();
        for (position, field) in fields.iter().enumerate() {
            let Some(tag) = field.tag else { continue };
            let position = position as u16;
            let wire = wires.binary_search_by_key(&position, |(at, _)| *at);
            let outer = wire.map_or(&[][..], |at| &wires[at].1.outer);
            message.insert(outer, tag, position);
        }
        message
    }

    fn insert(&mut self, outer: &[u32], tag: u32, position: u16) {
        let Some((first, rest)) = outer.split_first() else {
            let at = self.entries.partition_point(|(number, _)| *number < tag);
            return self.entries.insert(at, (tag, Entry::Field(position)));
        };
        let at = self.entries.partition_point(|(number, _)| number < first);
        if self
            .entries
            .get(at)
            .is_none_or(|(number, _)| number != first)
        {
            let inlined = Entry::Inlined(Message::default());
            self.entries.insert(at, (*first, inlined));
        }
        if let Entry::Inlined(inner) = &mut self.entries[at].1 {
            inner.insert(rest, tag, position);
        }
    }

    /// What a field number means; nothing when it is unknown.
    pub(crate) fn get(&self, number: u32) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&number, |(n, _)| *n);
        Some(&self.entries[at.ok()?].1)
    }

    /// All fields, by number.
    pub(crate) fn entries(&self) -> &[(u32, Entry)] {
        &self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
