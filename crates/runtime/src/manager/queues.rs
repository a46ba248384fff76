//! The numbers of all queues of a manager.

use std::sync::Arc;

use kubewright_workqueue::Stats;
use parking_lot::Mutex;

use crate::metrics::ControllerMetrics;

/// The queues of all controllers, for their numbers.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<Counted>>>);

/// The numbers of a queue, and where the number of its running requests is reported.
type Counted = (Box<dyn Fn() -> Stats + Send>, ControllerMetrics);

impl Queues {
    pub(crate) fn add(
        &self,
        stats: impl Fn() -> Stats + Send + 'static,
        metrics: ControllerMetrics,
    ) {
        self.0.lock().push((Box::new(stats), metrics));
    }

    pub(super) fn write(&self, out: &mut String) {
        let mut stats = Vec::new();
        for (read, metrics) in self.0.lock().iter() {
            let counted = read();
            // A key that runs is a worker at work.
            metrics.active(counted.running);
            stats.push(counted);
        }
        // Writing into a string cannot fail.
        let _ = kubewright_workqueue::prometheus::write(&stats, out);
    }
}
