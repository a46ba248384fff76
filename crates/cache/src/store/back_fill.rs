//! Adds an index to a store that is in use.
//!
//! The index is there from the start, hidden, so that the writer keeps it right for what changes from now on. What was
//! there before is filled in, a few objects at a time, unless it has changed meanwhile; then the index is shown. Its
//! function never runs under a lock.

use std::sync::Arc;

use super::{Shared, State};
use crate::index::{IndexExists, Indexer, Indexers, Postings, Visibility};
use crate::object::Object;
use crate::table::{Blocks, Slot};

/// Objects whose values are entered under one lock.
const CHUNK: usize = 256;

type Filled = Vec<(Slot, Arc<Object>, Vec<String>)>;

impl Shared {
    /// Adds an index and fills it. Of two that fill one name at once, the first to be ready stays.
    pub(crate) fn add_index(&self, indexer: Indexer) -> Result<(), IndexExists> {
        let before = self.state.write().hide(&indexer)?;
        let mut filled: Filled = Vec::new();
        for (slot, object) in before.iter() {
            let values = indexer.values(object, &self.reporter);
            filled.push((slot, object.clone(), values));
            if filled.len() == CHUNK {
                self.write(|state| state.fill(&indexer, &mut filled));
            }
        }
        self.write(|state| {
            state.fill(&indexer, &mut filled);
            state.show(&indexer)
        })
    }
}

impl State {
    /// The index of this name that readers see.
    pub(crate) fn index(&self, name: &str) -> Option<&Postings> {
        let mut shown = self.shown();
        shown.find(|postings| &*postings.indexer.name == name)
    }

    /// The indexes that readers see.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Postings> {
        let is_shown = |postings: &&Postings| postings.visibility == Visibility::Shown;
        self.indexes.iter().filter(is_shown)
    }

    /// Takes in an index that readers do not see, and gives what has to be filled in.
    fn hide(&mut self, indexer: &Indexer) -> Result<Blocks, IndexExists> {
        if self.index(&indexer.name).is_some() {
            return Err(IndexExists(indexer.name.to_string()));
        }
        self.indexes.push(Postings::new(indexer.clone()));
        self.renew_indexers();
        Ok(self.table.blocks())
    }

    /// Enters what has not changed since its values were made: what has was entered by the writer.
    fn fill(&mut self, indexer: &Indexer, filled: &mut Filled) {
        let Some(place) = self.place(indexer) else {
            return;
        };
        for (slot, object, values) in filled.drain(..) {
            let now = self.table.at(slot);
            if now.is_some_and(|now| Arc::ptr_eq(now, &object)) {
                self.indexes[place].set(slot, &values);
            }
        }
    }

    /// Shows the index, or drops it when another of its name is shown already.
    fn show(&mut self, indexer: &Indexer) -> Result<(), IndexExists> {
        let taken = self.index(&indexer.name).is_some();
        let Some(place) = self.place(indexer) else {
            return Err(IndexExists(indexer.name.to_string()));
        };
        if taken {
            self.indexes.remove(place);
            self.renew_indexers();
            return Err(IndexExists(indexer.name.to_string()));
        }
        self.indexes[place].visibility = Visibility::Shown;
        Ok(())
    }

    fn place(&self, indexer: &Indexer) -> Option<usize> {
        let is_it = |postings: &Postings| postings.indexer.is(indexer);
        self.indexes.iter().position(is_it)
    }

    fn renew_indexers(&mut self) {
        let all = self.indexes.iter().map(|postings| postings.indexer.clone());
        self.indexers = Arc::new(Indexers(all.collect()));
    }
}
