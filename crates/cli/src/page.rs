//! The console of a cluster that runs in this process.

use kubewright_console::{Console, Running};

/// Starts the page for a cluster of this process. If it cannot be shown, the cluster runs all the same.
pub(crate) async fn beside(page: Console) -> Option<Running> {
    match page.listen(([127, 0, 0, 1], 0).into()).await {
        Ok(running) => Some(running),
        Err(error) => {
            eprintln!(
                "The console could not be started: {:#}",
                anyhow::Error::from(error)
            );
            None
        }
    }
}
