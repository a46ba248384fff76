//! The CronJob of kubebuilder's tutorial, as far as the API server asks for it: two versions of a kind, defaulted, validated
//! and converted by this program.

mod demo;
mod schedule;
pub mod v1;
pub mod v2;
pub mod webhook;

pub use demo::run;
