//! A Kubernetes API server as a library.
//!
//! The server is a `tower::Service` over HTTP bytes: the same code answers in-process calls and TLS sockets.
//! Objects are kept as the bytes they are served as, in a multi-version store with one global revision.

pub mod environment;
pub mod storage;
#[allow(
    dead_code,
    unused_imports,
    reason = "request handlers do not ask for tables yet"
)]
mod printers;

#[allow(dead_code, unused_imports)] // The request handlers that call it are on their way.
mod kinds;
