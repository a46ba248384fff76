//! What an operator is deployed with: custom resource definitions, roles, webhooks, and the checks on them.
//!
//! A program says what it consists of in an [`Inventory`]; everything here is made from one, and knows no cluster.
//! What judges definitions, or makes samples, references and Rust types of them, is behind the feature `checks`: programs
//! that run in clusters link this crate, and need none of it.

#[cfg(feature = "checks")]
pub mod bundle;
#[cfg(feature = "checks")]
pub mod chart;
#[cfg(feature = "checks")]
pub mod compatibility;
#[cfg(feature = "checks")]
pub mod dashboard;
pub mod definition;
#[cfg(feature = "checks")]
mod fields;
#[cfg(feature = "checks")]
mod finding;
mod inventory;
#[cfg(feature = "checks")]
pub mod layout;
#[cfg(feature = "checks")]
pub mod lint;
#[cfg(feature = "checks")]
mod mark;
#[cfg(feature = "checks")]
pub mod project;
#[cfg(feature = "checks")]
pub mod reference;
pub mod role;
#[cfg(feature = "checks")]
pub mod rust_types;
#[cfg(feature = "checks")]
pub mod sample;
pub mod webhook;
pub mod yaml;

#[cfg(feature = "checks")]
pub use finding::{Finding, Severity};
pub use inventory::{Converted, FORMAT, Inventory, NewerFormat, Rule, Webhook, WebhookKind};
