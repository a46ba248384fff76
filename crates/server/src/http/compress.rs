//! Compression of large answers, for clients that ask for it across a network.

use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::body::ResponseBody;
use super::respond::Answer;

/// Answers below this size are sent as they are, as in Kubernetes.
const WORTH_IT: u64 = 128 * 1024;

/// Compresses an answer that is large and of known size; a watch is neither.
pub(crate) fn compress(headers: &HeaderMap, answer: Answer) -> Answer {
    let large = answer
        .body()
        .size_hint()
        .exact()
        .is_some_and(|size| size > WORTH_IT);
    if !large || !accepts_gzip(headers) || answer.headers().contains_key(CONTENT_ENCODING) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts
        .headers
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts
        .headers
        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
    let encoder = GzEncoder::new(Vec::new(), Compression::new(4));
    Answer::from_parts(
        parts,
        Gzip {
            body,
            encoder: Some(encoder),
        }
        .boxed_unsync(),
    )
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get(ACCEPT_ENCODING)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    accepted.split(',').any(|encoding| {
        let mut parts = encoding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|p| p == "q=0")
    })
}

/// A body that is compressed while it is sent.
struct Gzip {
    body: ResponseBody,
    /// Gone when the end has been written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Body for Gzip {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            let Some(mut encoder) = self.encoder.take() else {
                return Poll::Ready(None);
            };
            // Writing into memory does not fail.
            let out = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => {
                    self.encoder = Some(encoder);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    let _ = frame.data_ref().map(|data| encoder.write_all(data));
                    let out = std::mem::take(encoder.get_mut());
                    self.encoder = Some(encoder);
                    out
                }
                Poll::Ready(Some(Err(never))) => match never {},
                Poll::Ready(None) => encoder.finish().unwrap_or_default(),
            };
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http::StatusCode;

    use super::*;
    use crate::http::body::full;
    use crate::http::respond;

    async fn answer(size: usize, accepted: &'static str) -> (bool, Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
        let answer = respond::answer(StatusCode::OK, "application/json", full(vec![b'x'; size]));
        let answer = compress(&headers, answer);
        let compressed = answer.headers().contains_key(CONTENT_ENCODING);
        (
            compressed,
            answer
                .into_body()
                .collect()
                .await
                .expect("never fails")
                .to_bytes()
                .to_vec(),
        )
    }

    #[tokio::test]
    async fn large_answers_are_compressed_for_those_who_ask() {
        let (compressed, bytes) = answer(300_000, "deflate, gzip;q=0.5").await;
        assert!(compressed && bytes.len() < 10_000);
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut plain)
            .expect("gzip");
        assert_eq!(plain, vec![b'x'; 300_000]);
        assert_eq!(
            answer(300_000, "gzip;q=0").await,
            (false, vec![b'x'; 300_000])
        );
        assert_eq!(answer(1_000, "gzip").await, (false, vec![b'x'; 1_000]));
    }
}
