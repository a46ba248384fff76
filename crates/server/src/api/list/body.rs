//! A list on its way out: stored bytes between a head and a tail, put together while they are sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use super::Call;
use crate::printers::ListMetadata;
use crate::resource::Served;

/// A list is sent in pieces of about this size.
const CHUNK: usize = 64 * 1024;

/// A list as a body: stored bytes between a head and a tail, put together piece by piece while it is sent.
pub(super) struct ListBody {
    head: Bytes,
    /// What stands before each item: the brace that was cut off with the item's type.
    open: &'static [u8],
    items: std::vec::IntoIter<Bytes>,
    first: bool,
    tail: Option<Bytes>,
    left: usize,
}

impl ListBody {
    pub(super) async fn new(call: &Call, mut bodies: Vec<Bytes>, meta: &ListMetadata<'_>) -> Self {
        let served = &*call.served;
        let api_version = served.api_version.as_str();
        let prefix = format!(
            r#"{{"kind":"{}","apiVersion":"{api_version}","#,
            served.resource.kind
        );
        let typed = !served.lists_untyped();
        let open: &'static [u8] = if typed { b"{" } else { b"" };
        let mut size = bodies.len().saturating_sub(1) + bodies.len() * open.len();
        let cut = |body: &mut Bytes| {
            // Items of typed lists do not repeat their type.
            if typed && body.starts_with(prefix.as_bytes()) {
                body.advance(prefix.len());
            }
            size += body.len();
            Ok::<_, Infallible>(())
        };
        let Ok(_) = call.core.flow.slices.try_map(bodies.iter_mut(), cut).await;
        let (head, tail) = envelope(served, api_version, meta);
        let left = head.len() + tail.len() + size;
        Self {
            head,
            open,
            items: bodies.into_iter(),
            first: true,
            tail: Some(tail),
            left,
        }
    }

    fn next_chunk(&mut self) -> Option<Bytes> {
        self.tail.as_ref()?;
        let mut chunk = BytesMut::with_capacity(CHUNK.min(self.left) + 4096);
        chunk.put_slice(&std::mem::take(&mut self.head));
        while chunk.len() < CHUNK {
            let Some(item) = self.items.next() else {
                chunk.put_slice(&self.tail.take().unwrap_or_default());
                break;
            };
            if !std::mem::replace(&mut self.first, false) {
                chunk.put_u8(b',');
            }
            chunk.put_slice(self.open);
            chunk.put_slice(&item);
        }
        self.left -= chunk.len();
        Some(chunk.freeze())
    }

    pub(super) fn into_bytes(mut self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.left);
        while let Some(chunk) = self.next_chunk() {
            all.extend_from_slice(&chunk);
        }
        all.freeze()
    }
}

/// What stands around the items. Custom lists have their fields in alphabetical order, as custom objects do.
fn envelope(served: &Served, api_version: &str, meta: &ListMetadata<'_>) -> (Bytes, Bytes) {
    let kind = &served.resource.list_kind;
    let (head, tail) = if !served.lists_untyped() {
        let meta = list_metadata(meta);
        (
            format!(
                r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{meta},"items":["#
            ),
            "]}".to_owned(),
        )
    } else {
        let meta = sorted_list_metadata(meta);
        (
            format!(r#"{{"apiVersion":"{api_version}","items":["#),
            format!(r#"],"kind":"{kind}","metadata":{meta}}}"#),
        )
    };
    (head.into(), tail.into())
}

fn list_metadata(meta: &ListMetadata<'_>) -> String {
    let mut text = format!(r#"{{"resourceVersion":"{}""#, meta.resource_version);
    if !meta.continue_token.is_empty() {
        text.push_str(&format!(r#","continue":"{}""#, meta.continue_token));
    }
    if let Some(count) = meta.remaining_item_count {
        text.push_str(&format!(r#","remainingItemCount":{count}"#));
    }
    text.push('}');
    text
}

fn sorted_list_metadata(meta: &ListMetadata<'_>) -> String {
    let count = meta
        .remaining_item_count
        .map(|n| format!(r#""remainingItemCount":{n},"#))
        .unwrap_or_default();
    format!(
        r#"{{"continue":"{}",{count}"resourceVersion":"{}"}}"#,
        meta.continue_token, meta.resource_version
    )
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next_chunk().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.tail.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
