//! What benchmarks are made of: a client that costs little and knows nothing of Kubernetes but its kubeconfig, which the
//! kubectl lane makes its plain HTTP requests with too; stopwatches, the machine, figures, and the page they are written to.

mod access;
mod connection;
pub mod figure;
pub mod machine;
pub mod page;
pub mod stopwatch;

pub use access::Access;
pub use connection::{Connection, Lines, Protocol, Reply};
