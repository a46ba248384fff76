//! Informers against the embedded API server, with what can go wrong on the way.

mod deltas;
mod factory;
mod faults;
mod random;
mod shared;
mod story;
mod wire;
