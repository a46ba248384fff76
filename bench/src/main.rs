//! `kubewright-bench`.

fn main() {}
