//! The hand-kept list of fields that are written even when they are empty.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};

use super::definitions::Type;

/// See the comment in the file.
const LIST: &str = include_str!("always.txt");

/// Which fields are written even when they are empty.
pub(super) struct Always {
    /// Fields that are always written wherever they are structs.
    everywhere: BTreeSet<&'static str>,
    /// Exceptions from `everywhere`, by type and field.
    except: BTreeSet<(&'static str, &'static str)>,
    /// Fields by type and name.
    listed: BTreeSet<(&'static str, &'static str)>,
}

impl Always {
    pub(super) fn read() -> Result<Self> {
        let mut always = Self {
            everywhere: BTreeSet::new(),
            except: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        for line in LIST.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            match words.next() {
                Some("*") => always.everywhere.extend(words),
                Some("-") => {
                    let name = words.next().context("an exception names its type")?;
                    always.except.extend(words.map(|field| (name, field)));
                }
                Some(name) => always.listed.extend(words.map(|field| (name, field))),
                None => {}
            }
        }
        Ok(always)
    }

    /// Whether a field of a definition is always written. `ty` is its type in the table.
    pub(super) fn holds(&self, definition: &str, field: &str, ty: &str) -> bool {
        let name = definition.trim_start_matches("io.k8s.");
        let structure = ty.starts_with("io.k8s.");
        (structure && self.everywhere.contains(field) && !self.except.contains(&(name, field)))
            || self.listed.contains(&(name, field))
    }

    /// Fails when the list names a field that does not exist (any more).
    pub(super) fn check(&self, types: &[Type]) -> Result<()> {
        let fields: BTreeMap<&str, Vec<&str>> = types
            .iter()
            .map(|ty| {
                let names = ty.fields.iter().map(|field| field.name.as_str()).collect();
                (ty.name.trim_start_matches("io.k8s."), names)
            })
            .collect();
        for (name, field) in self.listed.iter().chain(&self.except) {
            let known = fields
                .get(name)
                .is_some_and(|fields| fields.contains(field));
            ensure!(known, "always.txt: {name} has no field {field}");
        }
        Ok(())
    }
}
