//! Frames of RFC 6455: those a server writes, and what it makes of those it reads.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, sink};
use tokio::sync::mpsc;

/// Most bytes in a control frame.
const MAX_CONTROL: u64 = 125;
/// Most bytes in a data frame that is read, which nobody looks at.
const MAX_DATA: u64 = 1024 * 1024;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opcode {
    Text = 1,
    Binary = 2,
    Close = 8,
    Pong = 10,
}

/// A whole message in one frame, unmasked as servers write them.
pub(crate) fn encode(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(0x80 | opcode as u8);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length), _) if length < 126 => frame.push(length),
        (_, Ok(length)) => {
            frame.push(126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// Reads what a client sends until it closes: data is thrown away, pings are passed on to be answered.
///
/// # Errors
/// When the connection breaks, or the client does not keep to the protocol.
pub(super) async fn read_until_closed(
    mut from: impl AsyncRead + Unpin,
    pings: mpsc::Sender<Bytes>,
) -> io::Result<()> {
    loop {
        let (first, second) = (from.read_u8().await?, from.read_u8().await?);
        let length = match second & 0x7f {
            126 => u64::from(from.read_u16().await?),
            127 => from.read_u64().await?,
            length => u64::from(length),
        };
        if second & 0x80 == 0 {
            return Err(broken("a client's frame is not masked"));
        }
        let mask = from.read_u32().await?.to_be_bytes();
        let opcode = first & 0x0f;
        if opcode < 8 {
            discard(&mut from, length).await?;
            continue;
        }
        if length > MAX_CONTROL || first & 0x80 == 0 {
            return Err(broken("a control frame is too long or in parts"));
        }
        let mut payload = vec![0; length as usize];
        from.read_exact(&mut payload).await?;
        match opcode {
            8 => return Ok(()),
            9 => {
                for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                    *byte ^= mask;
                }
                // One that is not taken in time may be left unanswered, as the next one is answered.
                let _ = pings.try_send(payload.into());
            }
            _ => {}
        }
    }
}

async fn discard(from: &mut (impl AsyncRead + Unpin), length: u64) -> io::Result<()> {
    if length > MAX_DATA {
        return Err(broken("a frame is too long"));
    }
    match tokio::io::copy(&mut from.take(length), &mut sink()).await? {
        read if read == length => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn broken(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        for (length, head) in [
            (0, vec![0x81, 0]),
            (125, vec![0x81, 125]),
            (126, vec![0x81, 126, 0, 126]),
            (65_535, vec![0x81, 126, 0xff, 0xff]),
            (65_536, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let frame = encode(Opcode::Text, &vec![b'x'; length]);
            assert_eq!(frame[..head.len()], head, "{length}");
            assert_eq!(frame.len(), head.len() + length);
        }
    }

    /// What became of these bytes of a client, and the pings in them.
    async fn read(bytes: &[u8]) -> (Option<io::ErrorKind>, Vec<Bytes>) {
        let (send, mut pings) = mpsc::channel(4);
        let result = read_until_closed(bytes, send).await;
        let mut found = Vec::new();
        while let Some(ping) = pings.recv().await {
            found.push(ping);
        }
        (result.err().map(|e| e.kind()), found)
    }

    #[tokio::test]
    async fn data_is_thrown_away_and_pings_are_passed_on_unmasked() {
        let mut bytes = vec![0x81, 0x83, 1, 2, 3, 4, 0, 0, 0];
        bytes.extend([0x89, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2]);
        bytes.extend([0x88, 0x80, 0, 0, 0, 0]);
        assert_eq!(read(&bytes).await, (None, vec![Bytes::from("hi")]));
    }

    #[tokio::test]
    async fn frames_against_the_protocol_end_the_connection() {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        let long = [0x82, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        for (bytes, expected) in [
            (&[0x81, 0x01, b'x', 0, 0, 0, 0][..], InvalidData),
            (&[0x09, 0x80, 0, 0, 0, 0], InvalidData),
            (&[0x89, 0xfe, 0, 126, 0, 0, 0, 0], InvalidData),
            (&long, InvalidData),
            (&[0x81, 0x83, 1, 2, 3, 4, 0], UnexpectedEof),
            (&[0x81], UnexpectedEof),
        ] {
            assert_eq!(read(bytes).await.0, Some(expected), "{bytes:?}");
        }
    }
}
