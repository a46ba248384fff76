//! Informers against the embedded API server, with what can go wrong on the way.

mod connections;
mod deltas;
mod factory;
mod faults;
mod life;
mod random;
mod shared;
#[path = "../support/mod.rs"]
mod support;

use support::{running, story, wire};
