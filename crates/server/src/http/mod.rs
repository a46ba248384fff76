//! The HTTP side: what a request asks for, and how an answer is written.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod compress;
pub(crate) mod head;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod respond;
pub(crate) mod streaming;
pub(crate) mod websocket;
