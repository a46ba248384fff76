//! What the tests of informers share: a server behind a transport that breaks, a handler that insists, an informer that runs.

// Each test program uses its own part of this.
#![allow(dead_code)]

pub(crate) mod running;
pub(crate) mod story;
pub(crate) mod strict;
pub(crate) mod wire;
