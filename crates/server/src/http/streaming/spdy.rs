//! SPDY/3.1, as much of it as clients of `exec`, `attach` and `port-forward` use: kubectl before 1.30, and every kubectl
//! that forwards a port, which wraps SPDY into WebSocket messages.
//!
//! Flow control is left out, as in the library that Go clients have: a stream is bounded by whoever reads it here.

mod frame;
mod headers;
mod session;

pub(super) use session::serve;
