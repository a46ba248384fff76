//! A client that costs little and knows nothing of Kubernetes but its kubeconfig: what the benchmark measures with, and
//! what the kubectl lane makes its plain HTTP requests with.

mod access;
mod connection;

pub use access::Access;
pub use connection::{Connection, Lines, Protocol, Reply};
