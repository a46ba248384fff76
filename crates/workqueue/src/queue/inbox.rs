//! Adds that nobody waits for gather here, so that those who add and those who work seldom meet at one lock.
//!
//! Whoever takes the lock of the queue takes them in first, in the order they came: nobody can tell the difference. While
//! a worker sleeps, or adds would come too late in another way, the inbox is closed and they go straight to the queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::machine::Added;

/// So many adds gather before whoever adds has to see to it that they are taken in: usually a worker came before.
const MOST: usize = 512;
/// Room for more is given back once there were fewer.
const FEW: usize = 64;

/// The inbox of a queue, on a cache line of its own.
#[repr(align(128))]
pub(super) struct Inbox<K, N> {
    inside: Mutex<Inside<K, N>>,
    /// How many adds there are: to be looked at without a lock.
    count: AtomicUsize,
}

struct Inside<K, N> {
    adds: Vec<Added<K, N>>,
    door: Door,
}

/// Whether adds may gather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    Closed,
}

/// What became of an add.
pub(super) enum Put<K, N> {
    /// It is in the inbox, and somebody will come for it.
    Kept,
    /// It is in the inbox with so many others that they must be taken in.
    Full,
    /// The inbox is closed.
    Refused(Added<K, N>),
}

impl<K, N> Inbox<K, N> {
    pub(super) fn new() -> Self {
        let inside = Inside {
            adds: Vec::new(),
            door: Door::Open,
        };
        Self {
            inside: Mutex::new(inside),
            count: AtomicUsize::new(0),
        }
    }

    pub(super) fn put(&self, add: Added<K, N>) -> Put<K, N> {
        let mut inside = self.lock();
        if inside.door == Door::Closed {
            return Put::Refused(add);
        }
        inside.adds.push(add);
        let count = inside.adds.len();
        self.count.store(count, Ordering::Release);
        match count < MOST {
            true => Put::Kept,
            false => Put::Full,
        }
    }

    /// Takes what there is. `empty` is what the inbox goes on with.
    pub(super) fn take(&self, empty: &mut Vec<Added<K, N>>) {
        // What comes after this look was added later.
        if self.count.load(Ordering::Acquire) > 0 {
            self.exchange(&mut self.lock(), empty);
        }
    }

    /// Opens or closes the inbox, and takes what there is: after it was closed nothing comes any more.
    pub(super) fn set(&self, door: Door, empty: &mut Vec<Added<K, N>>) {
        let mut inside = self.lock();
        inside.door = door;
        self.exchange(&mut inside, empty);
    }

    fn exchange(&self, inside: &mut Inside<K, N>, empty: &mut Vec<Added<K, N>>) {
        std::mem::swap(&mut inside.adds, empty);
        if empty.len() < FEW {
            inside.adds.shrink_to(FEW);
        }
        self.count.store(0, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Inside<K, N>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
