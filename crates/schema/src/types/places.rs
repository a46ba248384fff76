//! Finds the fields of a struct by their names: every member of every object that is read or written is looked up.

use super::Field;

/// Larger structs are searched through: what somebody makes of names that collide stays bounded.
const MOST: usize = 256;
/// No field is here.
const FREE: u16 = u16::MAX;

/// The positions of fields by name.
#[derive(Debug, Clone)]
pub(super) enum Places {
    /// By the hash of the name, those that collide one after the other. The length is a power of two, and at least half of
    /// them are free.
    Hashed(Box<[u16]>),
    /// The positions in the order of the names, for a binary search.
    Sorted(Box<[u16]>),
}

impl Default for Places {
    fn default() -> Self {
        Self::Sorted(Box::default())
    }
}

impl Places {
    /// # Panics
    /// When there are more fields than positions; schemas of clients are limited to fewer nodes than that.
    pub(super) fn of(fields: &[Field]) -> Self {
        assert!(
            fields.len() < usize::from(FREE),
            "a struct has too many fields"
        );
        let positions = (0..fields.len()).map(|position| position as u16);
        if fields.len() > MOST {
            let mut sorted: Vec<u16> = positions.collect();
            sorted.sort_by(|a, b| fields[*a as usize].name.cmp(&fields[*b as usize].name));
            return Self::Sorted(sorted.into());
        }
        let mut slots = vec![FREE; (fields.len() * 2).next_power_of_two()];
        let mask = slots.len() - 1;
        for position in positions {
            let mut at = hash(&fields[position as usize].name) & mask;
            while slots[at] != FREE {
                at = (at + 1) & mask;
            }
            slots[at] = position;
        }
        Self::Hashed(slots.into())
    }

    /// The position of a name among the fields that this was made of.
    pub(super) fn find(&self, fields: &[Field], name: &str) -> Option<usize> {
        match self {
            Self::Hashed(slots) => {
                let mask = slots.len() - 1;
                let mut at = hash(name) & mask;
                loop {
                    let position = slots[at];
                    if position == FREE {
                        return None;
                    }
                    if *fields[position as usize].name == *name {
                        return Some(position as usize);
                    }
                    at = (at + 1) & mask;
                }
            }
            Self::Sorted(sorted) => {
                let compare = |at: &u16| (*fields[*at as usize].name).cmp(name);
                let at = sorted.binary_search_by(compare).ok()?;
                Some(sorted[at] as usize)
            }
        }
    }
}

/// A few bytes tell the names within one struct apart.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().map_or(0, usize::from);
    let (length, last) = (bytes.len(), bytes.len().saturating_sub(1));
    let mixed = [byte(0), byte(length / 2), byte(last)];
    let mixed = mixed
        .into_iter()
        .fold(length, |mixed, byte| mixed.wrapping_mul(31) + byte);
    mixed ^ (mixed >> 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, Table, Type};

    #[test]
    fn every_field_is_found_where_it_is_and_nothing_else() {
        let mut table = Table::default();
        let ty = table.add(Type::of(Shape::Any));
        let names = |count: usize, name: fn(usize) -> String| -> Vec<String> {
            (0..count).map(name).collect()
        };
        for names in [
            vec![],
            vec![String::new()],
            names(1, |n| n.to_string()),
            names(MOST, |n| n.to_string()),
            names(MOST + 1, |n| n.to_string()),
            // All the same to the hash.
            names(99, |n| format!("a{n:0>6}zzzzzzzz")),
        ] {
            let fields: Vec<Field> = names.iter().map(|name| Field::new(name, ty)).collect();
            let places = Places::of(&fields);
            for (position, name) in names.iter().enumerate() {
                assert_eq!(places.find(&fields, name), Some(position), "{name}");
            }
            for absent in ["x", "-1", "a000100zzzzzzzz", "metadata"] {
                assert_eq!(places.find(&fields, absent), None, "{absent}");
            }
        }
    }

    #[test]
    fn names_of_built_in_fields_seldom_collide() {
        let table = Table::builtin();
        let (mut fields, mut steps) = (0, 0);
        for kind in table.kinds() {
            let Shape::Struct(object) = &table.get(kind.ty).shape else {
                continue;
            };
            let Places::Hashed(slots) = &object.places else {
                continue;
            };
            for (at, position) in slots.iter().enumerate().filter(|(_, p)| **p != FREE) {
                let home = hash(&object.fields[*position as usize].name);
                steps += at.wrapping_sub(home) & (slots.len() - 1);
                fields += 1;
            }
        }
        assert!(fields > 100 && steps < fields, "{steps} steps for {fields}");
    }
}
