//! Frames: what is read of a client's, and those that are written.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::headers::HeaderReader;
use crate::http::streaming::messages::broken;

/// Most bytes of a frame.
const MOST_BYTES: usize = 4 << 20;
/// The last frame of a stream in its direction.
pub(super) const FIN: u8 = 1;

/// A frame of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Open {
        stream: u32,
        headers: Vec<(String, String)>,
    },
    Data {
        stream: u32,
        bytes: Vec<u8>,
        last: bool,
    },
    Reset {
        stream: u32,
    },
    Ping(u32),
    GoAway,
    /// Settings, window sizes and what nobody needs here.
    Other,
}

/// Reads the next frame.
///
/// # Errors
/// When the connection breaks, or the client does not keep to the protocol.
pub(super) async fn read(
    from: &mut (impl AsyncRead + Unpin),
    headers: &mut HeaderReader,
) -> io::Result<Frame> {
    let (first, second) = (from.read_u32().await?, from.read_u32().await?);
    let flags = (second >> 24) as u8;
    let length = (second & 0x00ff_ffff) as usize;
    if length > MOST_BYTES {
        return Err(broken("a frame is too long"));
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).await?;
    if first & 0x8000_0000 == 0 {
        return Ok(Frame::Data {
            stream: first,
            bytes: payload,
            last: flags & FIN != 0,
        });
    }
    if (first >> 16) & 0x7fff != 3 {
        return Err(broken("a frame of another version than SPDY/3"));
    }
    let word = |at: usize| -> io::Result<u32> {
        let bytes = payload.get(at..at + 4).and_then(|b| b.try_into().ok());
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(u32::from_be_bytes(bytes) & 0x7fff_ffff)
    };
    Ok(match first & 0xffff {
        1 => Frame::Open {
            stream: word(0)?,
            headers: headers.read(payload.get(10..).unwrap_or_default())?,
        },
        3 => Frame::Reset { stream: word(0)? },
        6 => Frame::Ping(word(0)?),
        7 => Frame::GoAway,
        8 => {
            // It says nothing that is needed, but the next block refers to it.
            headers.read(payload.get(4..).unwrap_or_default())?;
            Frame::Other
        }
        _ => Frame::Other,
    })
}

fn control(kind: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (0x8003_0000 | kind).to_be_bytes().to_vec();
    frame.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A stream of the client's is taken.
pub(super) fn reply(stream: u32, headers: &[u8]) -> Vec<u8> {
    let mut payload = stream.to_be_bytes().to_vec();
    payload.extend_from_slice(headers);
    control(2, &payload)
}

/// A stream is given up.
pub(super) fn reset(stream: u32) -> Vec<u8> {
    let mut payload = stream.to_be_bytes().to_vec();
    payload.extend_from_slice(&5_u32.to_be_bytes());
    control(3, &payload)
}

/// An answer to a ping.
pub(super) fn pong(id: u32) -> Vec<u8> {
    control(6, &id.to_be_bytes())
}

/// The last frame of a connection.
pub(super) fn go_away(last: u32) -> Vec<u8> {
    let mut payload = last.to_be_bytes().to_vec();
    payload.extend_from_slice(&0_u32.to_be_bytes());
    control(7, &payload)
}

/// Bytes of a stream.
pub(super) fn data(stream: u32, bytes: &[u8], flags: u8) -> Vec<u8> {
    let mut frame = stream.to_be_bytes().to_vec();
    let second = (u32::from(flags) << 24) | (bytes.len() as u32 & 0x00ff_ffff);
    frame.extend_from_slice(&second.to_be_bytes());
    frame.extend_from_slice(bytes);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_and_broken_ones_end_the_connection() {
        let mut headers = HeaderReader::new();
        let bytes = data(7, b"abc", FIN);
        let frame = read(&mut &bytes[..], &mut headers).await.expect("a frame");
        let expect = Frame::Data {
            stream: 7,
            bytes: b"abc".to_vec(),
            last: true,
        };
        assert_eq!(frame, expect);
        let ping = read(&mut &pong(9)[..], &mut headers)
            .await
            .expect("a frame");
        assert_eq!(ping, Frame::Ping(9));
        let old = [0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];
        let long = [0, 0, 0, 1, 0, 0xff, 0xff, 0xff];
        let short = [0x80, 3, 0, 3, 0, 0, 0, 2, 0, 0];
        for bytes in [&old[..], &long, &short, &[0x80]] {
            assert!(
                read(&mut &bytes[..], &mut headers).await.is_err(),
                "{bytes:?}"
            );
        }
    }
}
