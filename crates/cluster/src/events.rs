//! Events of components that are not controllers of a manager: nodes, the scheduler, the node lifecycle controller.

use kubewright_runtime::Environment;
use kubewright_runtime::events::{EventWriter, Recorder, RecorderOptions};

/// How many events of a component may wait: a rush of pods is reported within a moment.
const WAITING: usize = 4_096;

/// The recorder of a component, and the writer that has to run for its events to arrive.
pub(crate) fn recorder(
    client: &kube::Client,
    component: &str,
    environment: Environment,
) -> (Recorder, EventWriter) {
    let options = RecorderOptions::new(component).queue(WAITING);
    Recorder::new(client.clone(), options, environment)
}
