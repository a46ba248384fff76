//! Webhooks: which ones there are, and what is made of their answers.

mod dispatch;
mod hook;
mod reinvocation;
mod review;

use super::cache::Cache;

pub(super) use reinvocation::Reinvocation;
pub(super) use review::request;

use hook::Configuration;

/// The webhooks of a server, read from their configurations.
#[derive(Debug)]
pub(super) struct Webhooks {
    mutating: Cache<Configuration>,
    validating: Cache<Configuration>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            mutating: Cache::of("mutatingwebhookconfigurations"),
            validating: Cache::of("validatingwebhookconfigurations"),
        }
    }
}
