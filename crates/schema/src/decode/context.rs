//! What a decoding walk carries along: where it is, what it has found wrong, how deep it may still go.

use std::collections::HashSet;
use std::fmt::Write;

use super::{DecodeError, MAX_DEPTH, Mismatch, StrictError, syntax};
use crate::types::{Table, TypeId};

/// Strict errors beyond this number are not kept.
const MAX_STRICT: usize = 100;

pub(super) struct Context<'t> {
    pub(super) table: &'t Table,
    /// Path of the present value as strict errors write it: `spec.containers[0]`.
    path: String,
    /// Names of the struct fields on the way to the present value, without indexes and map keys.
    fields: Vec<&'t str>,
    /// The struct that holds the last of `fields`.
    owner: Option<TypeId>,
    depth: usize,
    too_deep: bool,
    /// How many values around the present one decode without strict errors.
    quiet: usize,
    strict: Vec<StrictError>,
    seen: HashSet<StrictError>,
    /// The first value that does not fit. The walk goes on, because a syntax error further on counts more.
    error: Option<DecodeError>,
}

/// Where to return to after a field, item or key.
pub(super) struct Mark {
    path: usize,
    fields: usize,
    owner: Option<TypeId>,
}

/// What is known around a value that is decoded by itself.
pub(super) struct Alone<'t> {
    fields: Vec<&'t str>,
    owner: Option<TypeId>,
}

impl<'t> Context<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        Self {
            table,
            path: String::new(),
            fields: Vec::new(),
            owner: None,
            depth: 0,
            too_deep: false,
            quiet: 0,
            strict: Vec::new(),
            seen: HashSet::new(),
            error: None,
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            path: self.path.len(),
            fields: self.fields.len(),
            owner: self.owner,
        }
    }

    /// Goes to a field of a struct.
    pub(super) fn enter_field(&mut self, owner: TypeId, name: &'t str) -> Mark {
        let mark = self.enter_key(name);
        self.fields.push(name);
        self.owner = Some(owner);
        mark
    }

    /// Goes to a key of a map.
    pub(super) fn enter_key(&mut self, key: &str) -> Mark {
        let mark = self.mark();
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        mark
    }

    /// Goes to an item of a list.
    pub(super) fn enter_item(&mut self, index: usize) -> Mark {
        let mark = self.mark();
        write!(self.path, "[{index}]").expect("writing to a string does not fail");
        mark
    }

    /// Goes back to where an `enter_` method was called.
    pub(super) fn leave(&mut self, mark: Mark) {
        self.path.truncate(mark.path);
        self.fields.truncate(mark.fields);
        self.owner = mark.owner;
    }

    /// Counts one level of nesting. `false` means: too deep, stop.
    #[must_use]
    pub(super) fn descend(&mut self) -> bool {
        self.depth += 1;
        self.too_deep |= self.depth > MAX_DEPTH;
        !self.too_deep
    }

    pub(super) fn ascend(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn unknown(&mut self, key: &str) {
        let path = self.child(key);
        self.save(StrictError::Unknown(path));
    }

    pub(super) fn duplicate(&mut self, key: &str) {
        let path = self.child(key);
        self.save(StrictError::Duplicate(path));
    }

    fn child(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Goes into a value that Go decodes by itself: strict errors are not looked at, and others do not know the way
    /// to it.
    pub(super) fn enter_alone(&mut self) -> Alone<'t> {
        self.quiet += 1;
        Alone {
            fields: std::mem::take(&mut self.fields),
            owner: self.owner.take(),
        }
    }

    /// Goes back to where [`Context::enter_alone`] was called.
    pub(super) fn leave_alone(&mut self, alone: Alone<'t>) {
        self.quiet -= 1;
        self.fields = alone.fields;
        self.owner = alone.owner;
    }

    fn save(&mut self, error: StrictError) {
        if self.quiet == 0 && self.strict.len() < MAX_STRICT && self.seen.insert(error.clone()) {
            self.strict.push(error);
        }
    }

    /// A value of the wrong JSON type: `found` is what stands there, `wanted` the Go type of the place.
    pub(super) fn mismatch(&mut self, found: &str, wanted: &str) {
        let place = match self
            .owner
            .and_then(|owner| self.table.get(owner).name.as_deref())
        {
            Some(name) => {
                let owner = name.rsplit('.').next().unwrap_or(name);
                format!("struct field {owner}.{}", self.fields.join("."))
            }
            None => "value".to_owned(),
        };
        let mismatch = Mismatch {
            found: found.to_owned(),
            place,
            wanted: wanted.to_owned(),
        };
        self.error.get_or_insert(DecodeError::Mismatch(mismatch));
    }

    /// A value that a type with a parser of its own does not take.
    pub(super) fn fail(&mut self, message: String) {
        self.error.get_or_insert(DecodeError::Type(message));
    }

    /// Strict errors alone, for walks without a type.
    pub(super) fn into_strict(self) -> Vec<StrictError> {
        self.strict
    }

    /// Strict errors, or what prevents decoding.
    pub(super) fn finish(self) -> Result<Vec<StrictError>, DecodeError> {
        if self.too_deep {
            return Err(DecodeError::Parse(syntax::too_deep()));
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.strict),
        }
    }
}
