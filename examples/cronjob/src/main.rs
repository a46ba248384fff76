//! Serves the webhooks of CronJobs.

#[tokio::main]
async fn main() -> kubewright::Result {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    kubewright_example_cronjob::run().await
}
