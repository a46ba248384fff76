//! Keeps a Deployment for each Foo.

#[tokio::main]
async fn main() -> kubewright::Result {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    kubewright_example_foo::run().await
}
