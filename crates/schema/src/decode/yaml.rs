//! Reads YAML as Kubernetes does: one document, the scalars of YAML 1.1, and a budget on everything that repeats.

use std::thread;

use serde::de::DeserializeSeed;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Options, with_deserializer_from_str_with_options};

use super::{MAX_DEPTH, ParseError};

/// Nodes of one document. The largest published CRDs have a tenth of this.
const MAX_NODES: usize = 250_000;
/// Nodes that aliases may add to a document, all together.
const MAX_REPLAYED: usize = 50_000;

/// Stack of the thread that reads a deep document. The reader recurses, and without optimisation it needs almost 20 KiB
/// for a level of nesting: more than a caller may have left.
const STACK: usize = 64 * 1024 * MAX_DEPTH;
/// Documents that are not nested more deeply are read where they are, as JSON is: almost all that people write. A thread for
/// each would have its caller, which may be one of a few that serve all requests, wait for it to start and to end.
const SHALLOW: usize = 48;

/// Feeds the only document of a text to a seed.
pub(super) fn run<'de, S>(seed: S, bytes: &'de [u8]) -> Result<S::Value, ParseError>
where
    S: DeserializeSeed<'de> + Send,
    S::Value: Send,
{
    let text = std::str::from_utf8(bytes).map_err(|_| failure("invalid UTF-8"))?;
    if depth_bound(text) <= SHALLOW {
        return read(seed, text);
    }
    thread::scope(|scope| {
        thread::Builder::new()
            .name("yaml".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || read(seed, text))
            .map_err(|error| failure(&format!("no thread to read it: {error}")))?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// No part of a text is nested more deeply than this. Nothing is parsed for it, so it is often too much.
fn depth_bound(text: &str) -> usize {
    // What is behind an anchor can be repeated below itself.
    if text.contains('&') {
        return usize::MAX;
    }
    let breaks = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
    let columns = text.split(breaks).map(|line| {
        let spaces = line.len() - line.trim_start_matches([' ', '\t']).len();
        // `- - a: b` nests without a line of its own, and so does `? ? a`.
        let marks = line.as_bytes().windows(2);
        let marks = marks.filter(|pair| matches!(pair, [b'-' | b'?' | b':', b' ' | b'\t']));
        spaces + marks.count()
    });
    let flows = text.bytes().filter(|b| matches!(b, b'[' | b'{')).count();
    let empty = text.matches("[]").count() + text.matches("{}").count();
    // A list may stand at the column of the key that it belongs to: two levels for each column.
    2 * (columns.max().unwrap_or(0) + 1) + flows - empty
}

fn read<'de, S: DeserializeSeed<'de>>(seed: S, text: &'de str) -> Result<S::Value, ParseError> {
    with_deserializer_from_str_with_options(text, options(), |yaml| seed.deserialize(yaml))
        .map_err(|error| failure(&error.to_string()))
}

fn failure(message: &str) -> ParseError {
    ParseError::new(format!("error converting YAML to JSON: yaml: {message}"))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_merge_keys: 1_000,
            max_recorded_anchor_events: MAX_NODES,
            max_recorded_anchor_bytes: 4 * 1024 * 1024,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: 16,
        },
        emit_comments: false,
        // The seeds see every pair and report the repeated keys themselves.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells which thread reads.
    struct Reader;

    impl<'de> DeserializeSeed<'de> for Reader {
        type Value = thread::ThreadId;

        fn deserialize<D: serde::Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_any(serde::de::IgnoredAny)?;
            Ok(thread::current().id())
        }
    }

    #[test]
    fn a_usual_document_is_read_where_it_is() {
        let usual = run(Reader, b"kind: Pod\nspec:\n  containers:\n  - name: a\n");
        assert_eq!(usual.expect("YAML"), thread::current().id());
        let deep = run(Reader, "- ".repeat(100).as_bytes());
        assert_ne!(deep.expect("YAML"), thread::current().id());
    }

    #[test]
    fn usual_documents_are_shallow_and_deep_ones_are_not() {
        let deployment = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: a\n        ports:\n        - containerPort: 80\n        resources: {}\n";
        assert!(depth_bound(deployment) <= SHALLOW);
        let nested = (0..100).map(|n| format!("{}a:\n", " ".repeat(n)));
        for deep in [
            nested.collect(),
            "- ".repeat(100),
            "? ".repeat(100),
            "[".repeat(100),
            "a: &x {b: 1}\nc: *x\n".to_owned(),
        ] {
            let deep: String = deep;
            assert!(depth_bound(&deep) > SHALLOW, "{deep}");
        }
    }
}
