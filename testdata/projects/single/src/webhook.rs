//! The webhooks of this program.

pub mod v1;
