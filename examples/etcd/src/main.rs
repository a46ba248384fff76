//! Runs the operator: flags, probes, metrics, leader election and webhooks as `--help` says.

fn main() -> kubewright::Result {
    kubewright::operator!()
        .manager(kubewright_example_etcd::setup)
        .run()
}
