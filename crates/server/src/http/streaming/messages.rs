//! WebSocket messages of RFC 6455, both ways, for clients that send something.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::http::websocket::frame::{Opcode, encode};

/// Most bytes in one message of a client.
pub(super) const MOST_BYTES: usize = 4 << 20;
/// How long a client may take to accept a message.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes in a control frame.
const MAX_CONTROL: u64 = 125;

/// What a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    Data(Vec<u8>),
    Ping(Vec<u8>),
    Close,
}

/// Reads messages. A read that is given up loses what it had of a message, so one task does nothing else.
pub(super) struct MessageReader<R> {
    from: R,
    /// The parts of a message that have come so far.
    partial: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from,
            partial: None,
        }
    }

    /// The next message.
    ///
    /// # Errors
    /// When the connection breaks, or the client does not keep to the protocol.
    pub(super) async fn next(&mut self) -> io::Result<Message> {
        loop {
            let (first, second) = (self.from.read_u8().await?, self.from.read_u8().await?);
            let length = match second & 0x7f {
                126 => u64::from(self.from.read_u16().await?),
                127 => self.from.read_u64().await?,
                length => u64::from(length),
            };
            let (last, opcode) = (first & 0x80 != 0, first & 0x0f);
            if second & 0x80 == 0 {
                return Err(broken("a client's frame is not masked"));
            }
            if opcode >= 8 && (length > MAX_CONTROL || !last) {
                return Err(broken("a control frame is too long or in parts"));
            }
            let before = self.partial.as_ref().map_or(0, Vec::len);
            let size = usize::try_from(length).unwrap_or(usize::MAX);
            if before.saturating_add(size) > MOST_BYTES {
                return Err(broken("a message is too long"));
            }
            let mask = self.from.read_u32().await?.to_be_bytes();
            let mut payload = vec![0; size];
            self.from.read_exact(&mut payload).await?;
            for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                *byte ^= mask;
            }
            match opcode {
                8 => return Ok(Message::Close),
                9 => return Ok(Message::Ping(payload)),
                10 => continue,
                0 if self.partial.is_none() => return Err(broken("a part without a beginning")),
                _ => {}
            }
            let mut whole = self.partial.take().unwrap_or_default();
            whole.append(&mut payload);
            if last {
                return Ok(Message::Data(whole));
            }
            self.partial = Some(whole);
        }
    }
}

/// Writes one message.
///
/// # Errors
/// When the connection breaks, or the client does not take it in time.
pub(super) async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    opcode: Opcode,
    payload: &[u8],
) -> io::Result<()> {
    timeout(PATIENCE, async {
        to.write_all(&encode(opcode, payload)).await?;
        to.flush().await
    })
    .await?
}

pub(super) fn broken(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
