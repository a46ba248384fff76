//! Admission from outside: plugins, webhooks on real sockets, policies, and conversion.

#[path = "../client/mod.rs"]
mod client;
mod connect;
mod conversion;
mod hooks;
mod plugins;
mod policies;
mod server;
mod webhooks;
