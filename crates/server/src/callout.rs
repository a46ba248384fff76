//! Calls from the server to webhooks: where they are, whom to trust there, and how long to wait.
//!
//! A call is one connection, HTTP/1.1 over TLS, one JSON object each way. Redirects are not followed, answers are
//! limited in size, and the whole of it in time.

mod client;
mod pass_on;
mod services;
mod target;
mod trust;

pub(crate) use client::Callout;
pub(crate) use pass_on::ClientIdentity;
pub(crate) use services::ServiceDirectory;
pub use services::Services;
pub(crate) use target::{InvalidTarget, Target};
pub(crate) use trust::ServerTrust;
