//! Prints what happens to Pods. Arguments are names of Pods that were there when it last ran.

use kubewright::prelude::*;

#[tokio::main]
async fn main() -> Result {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let known = std::env::args().skip(1);
    let known: Vec<Key> = known.map(|name| Key::new("default", &name)).collect();
    kubewright_example_pod_printer::run(&known).await
}
