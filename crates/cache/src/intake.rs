//! Turns bytes of the wire into objects and watch events.
//!
//! One object that cannot be read is reported and skipped: the last state that could be read stays. Its deletion counts all
//! the same: that needs its key and nothing else. An object of a list that the store has already, in the same state, is
//! not copied again, so that a relist takes no second memory.

use std::sync::Arc;

use crate::json::{self, Malformed, Walk};
use crate::object::Object;
use crate::parse::{self, ParseError, TypeMeta};
use crate::report::{Report, Reporter};
use crate::shape::Shape;
use crate::source::{Failure, FailureKind};
use crate::store::Shared;

/// The annotation on the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

type Make = fn(Arc<Object>) -> WatchEvent;

/// What a watch says.
#[derive(Debug)]
pub(crate) enum WatchEvent {
    Added(Arc<Object>),
    Modified(Arc<Object>),
    Deleted(Arc<Object>),
    Bookmark {
        resource_version: String,
        ends_initial: bool,
    },
    Error(Failure),
    /// Something that could not be read, already reported.
    Skipped,
}

/// Reads objects in one shape, for one store.
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    pub(crate) shape: Arc<Shape>,
    pub(crate) known: Option<Arc<Shared>>,
    pub(crate) reporter: Reporter,
}

impl Intake {
    pub(crate) fn new(shape: Shape, reporter: Reporter) -> Self {
        Self {
            shape: Arc::new(shape),
            known: None,
            reporter,
        }
    }

    /// Reads an item of a list; nothing when it must be skipped.
    pub(crate) fn item(&self, bytes: &[u8], types: Option<&TypeMeta>) -> Option<Arc<Object>> {
        match parse::parse(bytes, &self.shape, types) {
            Ok(object) => Some(self.reuse(object)),
            Err(error) => {
                let identity = self.refuse(bytes, &error)?;
                let known = self.known(&identity);
                // Another object of the same name is not a later state of the one that is known.
                known.filter(|known| known.is_same_object(&identity))
            }
        }
    }

    /// Whether the object is one of those that are kept.
    pub(crate) fn is_selected(&self, object: &Object) -> bool {
        let selection = self.shape.selection.as_ref();
        selection.is_none_or(|selection| selection.holds(object.key()))
    }

    /// The event as far as it concerns the objects that are kept. One that is not kept is as good as deleted: if it was not
    /// in the store, nobody hears of it, and its version counts all the same.
    pub(crate) fn selected(&self, event: WatchEvent) -> WatchEvent {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object)
                if !self.is_selected(&object) =>
            {
                WatchEvent::Deleted(object)
            }
            event => event,
        }
    }

    /// Reads one line of a watch.
    ///
    /// # Errors
    /// When it is not a watch event at all: something was lost, and the watch cannot go on.
    pub(crate) fn event(&self, line: &[u8]) -> Result<WatchEvent, Failure> {
        if let Some(event) = self.usual(line) {
            return Ok(event);
        }
        let (kind, object) = envelope(line).map_err(|Malformed| {
            let start = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
            Failure::new(FailureKind::Malformed, format!("no watch event: {start}"))
        })?;
        match kind {
            "ERROR" => Ok(WatchEvent::Error(Failure::from_status(0, object, None))),
            "BOOKMARK" => bookmark(object),
            "ADDED" => Ok(self.object(object, WatchEvent::Added)),
            "MODIFIED" => Ok(self.object(object, WatchEvent::Modified)),
            "DELETED" => Ok(self.object(object, WatchEvent::Deleted)),
            other => {
                self.reporter.report(&Report::Undecodable {
                    key: None,
                    message: format!("unknown watch event {other:?}"),
                });
                Ok(WatchEvent::Skipped)
            }
        }
    }

    /// Reads a change as API servers write it: the type first, and nothing after the object. That the object ends where
    /// the line does is seen when it is parsed, so such a line is gone through once. Nothing when anything is unusual.
    fn usual(&self, line: &[u8]) -> Option<WatchEvent> {
        const KINDS: [(&[u8], Make); 3] = [
            (b"MODIFIED", WatchEvent::Modified),
            (b"ADDED", WatchEvent::Added),
            (b"DELETED", WatchEvent::Deleted),
        ];
        let rest = line.strip_prefix(br#"{"type":""#)?;
        let mut kinds = KINDS.into_iter();
        let (event, rest) =
            kinds.find_map(|(kind, event)| Some((event, rest.strip_prefix(kind)?)))?;
        let object = rest.strip_prefix(br#"","object":"#)?.strip_suffix(b"}")?;
        match parse::parse(object, &self.shape, None) {
            Err(ParseError::Malformed) => None,
            parsed => Some(self.read(object, parsed, event)),
        }
    }

    fn object(&self, bytes: &[u8], event: Make) -> WatchEvent {
        self.read(bytes, parse::parse(bytes, &self.shape, None), event)
    }

    fn read(
        &self,
        bytes: &[u8],
        parsed: Result<Arc<Object>, ParseError>,
        event: Make,
    ) -> WatchEvent {
        let object = match parsed {
            Ok(object) => object,
            Err(error) => {
                let Some(identity) = self.refuse(bytes, &error) else {
                    return WatchEvent::Skipped;
                };
                return match event(identity) {
                    deleted @ WatchEvent::Deleted(_) => deleted,
                    _ => WatchEvent::Skipped,
                };
            }
        };
        match event(object) {
            // Streams of the initial state repeat what is known already.
            WatchEvent::Added(object) => WatchEvent::Added(self.reuse(object)),
            other => other,
        }
    }

    /// Reports an object that cannot be read, and reads as much of it as says which object it is.
    fn refuse(&self, bytes: &[u8], error: &ParseError) -> Option<Arc<Object>> {
        let identity = parse::identity(bytes);
        let message = match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        self.reporter.report(&Report::Undecodable {
            key: identity.as_ref().map(|object| object.key().clone()),
            message,
        });
        identity
    }

    fn reuse(&self, object: Arc<Object>) -> Arc<Object> {
        match self.known(&object) {
            Some(known) if known.is_same_state(&object) => known,
            _ => object,
        }
    }

    fn known(&self, object: &Object) -> Option<Arc<Object>> {
        let state = self.known.as_ref()?.state.read();
        state.table.get(object.key().as_str()).cloned()
    }
}

/// The type and the object of a watch event.
fn envelope(line: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let mut walk = Walk::new(line, 0..line.len(), b'{')?;
    let (mut kind, mut object) = (None, None);
    while let Some(member) = walk.member()? {
        match &line[member.name] {
            b"type" => kind = line.get(member.value.start + 1..member.value.end - 1),
            b"object" => object = Some(&line[member.value]),
            _ => {}
        }
    }
    let whole = json::skip_whitespace(line, walk.position()) == line.len();
    let kind = kind.and_then(|kind| std::str::from_utf8(kind).ok());
    match (kind, object) {
        (Some(kind), Some(object)) if whole => Ok((kind, object)),
        _ => Err(Malformed),
    }
}

/// A bookmark's object has no name: only its version and annotations count.
fn bookmark(object: &[u8]) -> Result<WatchEvent, Failure> {
    #[derive(serde::Deserialize)]
    struct Bookmark {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
        #[serde(default)]
        annotations: std::collections::BTreeMap<String, String>,
    }
    let bookmark: Bookmark = serde_json::from_slice(object)
        .map_err(|error| Failure::new(FailureKind::Malformed, format!("no bookmark: {error}")))?;
    let end = bookmark.metadata.annotations.get(INITIAL_EVENTS_END);
    Ok(WatchEvent::Bookmark {
        ends_initial: end.is_some_and(|value| value == "true"),
        resource_version: bookmark.metadata.resource_version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intake(shape: Shape) -> (Intake, Arc<parking_lot::Mutex<Vec<String>>>) {
        let (reporter, reports) = Reporter::recording();
        (Intake::new(shape, reporter), reports)
    }

    #[test]
    fn events_are_read_whatever_the_order_of_their_fields() {
        let (intake, _) = intake(Shape::default());
        let object = r#"{"metadata":{"name":"a","resourceVersion":"3"}}"#;
        for line in [
            format!(r#"{{"type":"MODIFIED","object":{object}}}"#),
            format!(r#" {{ "object" : {object} , "type" : "MODIFIED" }} "#),
            format!(r#"{{"type":"MODIFIED","object":{object},"later":{{"metadata":{{}}}}}}"#),
        ] {
            let event = intake.event(line.as_bytes());
            assert!(matches!(event, Ok(WatchEvent::Modified(o)) if o.resource_version() == "3"));
        }
    }

    #[test]
    fn only_an_annotation_that_is_true_ends_the_initial_events() {
        let (intake, _) = intake(Shape::default());
        for (value, expected) in [("true", true), ("false", false), ("", false)] {
            let line = format!(
                r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"5","annotations":{{"k8s.io/initial-events-end":"{value}"}}}}}}}}"#
            );
            let event = intake.event(line.as_bytes()).expect("it is an event");
            assert!(
                matches!(event, WatchEvent::Bookmark { ends_initial, .. } if ends_initial == expected)
            );
        }
    }

    #[test]
    fn object_that_cannot_be_read_is_reported_and_skipped() {
        #[derive(serde::Deserialize)]
        struct Strict {
            #[serde(rename = "spec")]
            _spec: u8,
        }
        let shape = Shape::default().keep(crate::Keep::Checked).of::<Strict>();
        let (intake, reports) = intake(shape);
        let bad = br#"{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":"x"}}"#;
        assert!(matches!(intake.event(bad), Ok(WatchEvent::Skipped)));
        let unknown = br#"{"type":"NEWER","object":{}}"#;
        assert!(matches!(intake.event(unknown), Ok(WatchEvent::Skipped)));
        assert!(
            intake
                .item(br#"{"metadata":{"name":"b"},"spec":"x"}"#, None)
                .is_none()
        );
        assert!(
            intake
                .item(br#"{"metadata":{"name":"c"},"spec":1}"#, None)
                .is_some()
        );
        assert!(
            reports.lock()[0].starts_with("a cannot be read: it does not decode: invalid type")
        );
        assert_eq!(reports.lock().len(), 3);
    }

    #[test]
    fn deletion_counts_whatever_the_last_state_is_and_other_events_are_skipped() {
        #[derive(serde::Deserialize)]
        struct Strict {
            #[serde(rename = "spec")]
            _spec: u8,
        }
        let refuse = |_: &mut serde_json::Value| Err("no".to_owned());
        let panic = |_: &mut serde_json::Value| panic!("a transform may panic");
        for shape in [
            Shape::default().keep(crate::Keep::Checked).of::<Strict>(),
            Shape::default().keep(crate::Keep::Decoded).of::<Strict>(),
            Shape::default().transform(refuse),
            Shape::default().transform(panic),
        ] {
            let (intake, reports) = intake(shape);
            let object = r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{"k":"v"}},"spec":"x"}"#;
            for (kind, unusual) in [("ADDED", false), ("MODIFIED", false), ("ADDED", true)] {
                let line = line(kind, object, unusual);
                let event = intake.event(line.as_bytes());
                assert!(matches!(event, Ok(WatchEvent::Skipped)), "{kind}");
            }
            for unusual in [false, true] {
                let event = intake.event(line("DELETED", object, unusual).as_bytes());
                let Ok(WatchEvent::Deleted(identity)) = event else {
                    panic!("the deletion is lost: {event:?}");
                };
                assert_eq!(identity.key().as_str(), "n/a");
                assert_eq!(
                    (&*identity.uid(), &*identity.resource_version()),
                    ("u", "7")
                );
                assert!(identity.is_identity());
                assert!(
                    identity.labels().is_empty(),
                    "nothing else of a state that was refused goes further"
                );
            }
            assert_eq!(reports.lock().len(), 5);
        }
    }

    fn line(kind: &str, object: &str, unusual: bool) -> String {
        if unusual {
            format!(r#"{{"object":{object},"type":"{kind}"}}"#)
        } else {
            format!(r#"{{"type":"{kind}","object":{object}}}"#)
        }
    }

    #[test]
    fn line_that_is_cut_is_a_failure() {
        let (intake, _) = intake(Shape::default());
        let line = br#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#;
        assert!(intake.event(line).is_ok());
        for end in 0..line.len() {
            let failure = intake.event(&line[..end]).expect_err("it is cut");
            assert_eq!(failure.kind, FailureKind::Malformed);
        }
    }
}
