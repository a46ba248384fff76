//! What follows from stored objects: addresses, roles, definitions, webhooks, quotas. It is in force with the write that
//! brings it, whoever hangs up, and is what a restart makes of the same objects.

#[path = "../client/mod.rs"]
mod client;
#[allow(dead_code, reason = "the tests of admission use more of it")]
#[path = "../admission/hooks.rs"]
mod hooks;

mod addresses;
mod connect;
mod definitions;
mod hangups;
mod held;
mod many;
mod objects;
mod quotas;
mod ranges;
mod restore;
mod stress;
