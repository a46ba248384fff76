//! Which runtime a container belongs to: the simulation, or the one that the nodes were given.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};

use super::runtime::{ImagePull, Life, PullError, Runtime, Simulation};

/// The runtimes of the nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Engine {
    pub(crate) simulation: Simulation,
    /// Runs every image that no test has given a behaviour.
    pub(crate) other: Option<Arc<dyn Runtime>>,
}

impl Engine {
    /// The runtime of a container.
    pub(crate) fn of(&self, container: &Container) -> Arc<dyn Runtime> {
        let image = container.image.as_deref().unwrap_or("");
        match &self.other {
            Some(other) if !self.simulation.has_program(image) => other.clone(),
            _ => Arc::new(self.simulation.clone()),
        }
    }

    /// The runtime that answers for a pod as a whole: that of its first container.
    pub(crate) fn of_pod(&self, pod: &Pod) -> Arc<dyn Runtime> {
        let first = pod.spec.as_ref().and_then(|spec| spec.containers.first());
        match first {
            Some(container) => self.of(container),
            None => Arc::new(self.simulation.clone()),
        }
    }

    /// Who lives the life of a container.
    pub(crate) fn life(&self, pod: &Pod, container: &Container) -> Life {
        let image = container.image.as_deref().unwrap_or("");
        match &self.other {
            Some(other) if !self.simulation.has_program(image) => other.life(pod, container),
            _ => self.simulation.life(pod, container),
        }
    }

    /// Whether the image of a scripted container can be had.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn check_image(&self, pull: &ImagePull) -> Result<(), PullError> {
        self.simulation.check(pull)
    }

    /// The runtimes of a fork.
    pub(crate) fn copy(&self) -> Self {
        Self {
            simulation: self.simulation.copy(),
            other: self.other.as_ref().map(|other| other.fork()),
        }
    }
}
