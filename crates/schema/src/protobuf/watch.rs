//! Frames of a watch: events after their length.

use super::wire::{put_bytes, put_message};

const TYPE: u32 = 1;
const OBJECT: u32 = 2;
const RAW: u32 = 1;

/// One frame of a watch: the length of the event in four bytes, most significant first, and the event.
///
/// `object` has its envelope, as [`encode`](super::encode) writes it.
pub fn watch_frame(event_type: &str, object: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(object.len() + 32);
    frame.extend_from_slice(&[0; 4]);
    put_bytes(TYPE, event_type.as_bytes(), &mut frame);
    put_message(OBJECT, &mut frame, |out| put_bytes(RAW, object, out));
    let length = u32::try_from(frame.len() - 4).expect("an object is far below four gigabytes");
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}
