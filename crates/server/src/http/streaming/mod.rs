//! Connections that go on as something else than HTTP: `exec`, `attach` and `port-forward`.
//!
//! A verb answers with a [`Tunnel`]. When the connection can be upgraded, [`Tunnel::accept`] agrees on a protocol with
//! the client and says what the connection goes on with: channels over WebSocket, SPDY/3.1, or SPDY within WebSocket
//! messages, which is what kubectl forwards ports with.
//!
//! What is sent over WebSocket and SPDY is bounded: messages by [`messages::MOST_BYTES`], streams by the channels of
//! [`Streams`], and a client that does not read in time is left.

mod channels;
mod messages;
mod spdy;
mod tunnel;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::DuplexStream;

use crate::agents::{AgentError, Streams, Wanted};

/// How a process that was run or attached to ended.
pub(crate) type Ended = Result<Option<i32>, AgentError>;

/// What a connection is to go on with. It is used once.
#[derive(Clone)]
pub(crate) struct Tunnel(Arc<Mutex<Option<Purpose>>>);

/// What a connection is for.
pub(crate) enum Purpose {
    Process {
        wanted: Wanted,
        run: Box<dyn FnOnce(Streams) -> BoxFuture<'static, Ended> + Send>,
    },
    Ports {
        /// The ports that a client names beforehand; over SPDY it names them with each stream.
        ports: Vec<u16>,
        connect: Connect,
    },
}

/// Connects a stream with a port.
pub(crate) type Connect =
    Arc<dyn Fn(u16, DuplexStream) -> BoxFuture<'static, Result<(), AgentError>> + Send + Sync>;

impl Tunnel {
    pub(crate) fn new(purpose: Purpose) -> Self {
        Self(Arc::new(Mutex::new(Some(purpose))))
    }

    fn take(&self) -> Option<Purpose> {
        self.0.lock().take()
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tunnel")
    }
}

/// How a process ended, as the error stream of protocol 4 and later says it.
pub(crate) fn status_of(ended: &Ended) -> Vec<u8> {
    let status = match ended {
        Ok(None | Some(0)) => json!({"metadata": {}, "status": "Success"}),
        Ok(Some(code)) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(error) => json!({
            "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
            "message": format!("Internal error occurred: error executing command in container: {error}"),
            "details": {"causes": [{"message": error.to_string()}]},
        }),
    };
    status.to_string().into_bytes()
}
