//! Splits the bytes of a watch into lines, without a copy for each line.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use crate::source::{Chunks, Failure, FailureKind};

/// A line longer than this is not a watch event. API servers store objects of a few megabytes at most.
const LONGEST: usize = 64 << 20;

/// One line of a watch.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Ended by a newline.
    Whole(Bytes),
    /// The stream ended in the middle of it, or the newline is missing.
    Unfinished(Bytes),
}

/// The lines of a stream of chunks. A line within one chunk is a view of that chunk.
pub(crate) struct Lines {
    chunks: Box<dyn Chunks>,
    /// What came last and is not split yet.
    chunk: Bytes,
    /// The start of a line whose end has not come.
    partial: BytesMut,
}

impl Lines {
    pub(crate) fn new(chunks: Box<dyn Chunks>) -> Self {
        Self {
            chunks,
            chunk: Bytes::new(),
            partial: BytesMut::new(),
        }
    }

    /// The next line that is not empty; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Line, Failure>> {
        loop {
            match self.split() {
                Some(line) if line.is_empty() => continue,
                Some(line) => return Some(Ok(Line::Whole(line))),
                None => {}
            }
            if self.partial.len() > LONGEST {
                let message = format!("a line has more than {LONGEST} bytes");
                return Some(Err(Failure::new(FailureKind::Malformed, message)));
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(failure)) => return Some(Err(failure)),
                None if self.partial.is_empty() => return None,
                None => return Some(Ok(Line::Unfinished(self.partial.split().freeze()))),
            }
        }
    }

    /// Whether more came with the last line.
    pub(crate) fn have_more(&self) -> bool {
        !self.chunk.is_empty()
    }

    /// Takes a line out of the chunk, or the rest of the chunk aside.
    fn split(&mut self) -> Option<Bytes> {
        let Some(end) = memchr(b'\n', &self.chunk) else {
            self.partial.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return None;
        };
        let line = self.chunk.split_to(end);
        self.chunk.advance(1);
        if self.partial.is_empty() {
            return Some(line);
        }
        self.partial.extend_from_slice(&line);
        Some(self.partial.split().freeze())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;
    use crate::source::BoxFuture;

    struct Cut(std::vec::IntoIter<Bytes>);

    impl Chunks for Cut {
        fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, Failure>>> {
            Box::pin(async { self.0.next().map(Ok) })
        }
    }

    fn lines(text: &[u8], step: usize) -> Vec<Line> {
        let chunks: Vec<Bytes> = text.chunks(step).map(Bytes::copy_from_slice).collect();
        let mut lines = Lines::new(Box::new(Cut(chunks.into_iter())));
        let next = || lines.next().now_or_never().expect("nothing waits");
        std::iter::from_fn(next).map_while(Result::ok).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn lines_do_not_depend_on_how_the_bytes_are_cut(
            texts in prop::collection::vec("[a-z]{0,9}", 0..8), rest in "[a-z]{0,5}", step in 1_usize..20,
        ) {
            let mut whole = String::new();
            for text in &texts {
                whole.push_str(text);
                whole.push('\n');
            }
            whole.push_str(&rest);
            let mut expected: Vec<Line> = texts.iter().filter(|t| !t.is_empty())
                .map(|t| Line::Whole(Bytes::copy_from_slice(t.as_bytes()))).collect();
            if !rest.is_empty() {
                expected.push(Line::Unfinished(Bytes::copy_from_slice(rest.as_bytes())));
            }
            prop_assert_eq!(lines(whole.as_bytes(), step), expected);
        }
    }
}
