//! Access control over HTTP: roles, escalation, impersonation, tokens, reviews, the audit log.

mod audit;
mod certificates;
mod escalation;
#[path = "../golden/mod.rs"]
mod golden;
mod host;
mod impersonation;
mod recorded;
mod reviews;
mod roles;
mod secrecy;
mod tokens;
