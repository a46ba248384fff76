//! The server under attack: every request gets its answer, nothing half-done is kept, and the next client is served.

mod call;
mod host;

mod bodies;
mod names;
mod objects;
mod patches;
mod versions;
