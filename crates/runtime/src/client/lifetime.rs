//! The informers of a client, as long as a manager over it lives.

use kubewright_cache::Factory;

/// Stops the informers of a client when it is dropped: handlers hold clients, and clients hold the informers that feed the
/// handlers, so somebody has to cut that.
#[derive(Debug)]
pub(crate) struct InformerLifetime(Factory);

impl InformerLifetime {
    pub(super) fn of(factory: Factory) -> Self {
        Self(factory)
    }

    pub(crate) fn factory(&self) -> &Factory {
        &self.0
    }
}

impl Drop for InformerLifetime {
    fn drop(&mut self) {
        self.0.stop();
    }
}
