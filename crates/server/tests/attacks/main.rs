//! The server under attack: every request gets its answer, nothing half-done is kept, and the next client is served.

mod call;
mod host;
mod socket;

mod bodies;
mod definitions;
mod fairness;
mod identity;
mod load;
mod names;
mod objects;
mod patches;
mod restart;
mod streams;
mod tunnels;
mod versions;
mod websockets;
mod wire;
