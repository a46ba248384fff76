//! Webhooks: which ones there are, and what is made of their answers.

mod dispatch;
mod hook;
mod reinvocation;
mod review;

use super::cache::{Cache, Follow};

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
            mutating: Cache::of("mutatingwebhookconfigurations", Configuration::read),
            validating: Cache::of("validatingwebhookconfigurations", Configuration::read),
        }
    }
}

impl Webhooks {
    /// What is compiled from each kind of configuration.
    pub(super) fn caches(&self) -> [&dyn Follow; 2] {
        [&self.mutating, &self.validating]
    }
}
