//! Finds values in JSON bytes without parsing them.
//!
//! A scan proves brackets and strings only: what it finds is parsed by whoever uses it. Nothing recurses, so
//! nesting costs no stack.

use std::ops::Range;

use memchr::memchr2;

/// Where a value is in the bytes it was found in.
pub(crate) type Span = Range<usize>;

/// Strings up to this length are short.
const SHORT: usize = 24;

/// Scans over one value, and can wait for more bytes in the middle of it.
#[derive(Debug, Default)]
pub(crate) struct Skip {
    /// Bytes already seen, counted from the start of the value.
    seen: usize,
    depth: usize,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Before,
    Structure,
    Text,
    Scalar,
}

impl Skip {
    /// Whether nothing has been looked at.
    pub(crate) fn is_fresh(&self) -> bool {
        self.seen == 0
    }

    /// The end of the value that `bytes` starts with; nothing while it is not complete. Called again with more
    /// bytes it goes on where it stopped.
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            let finished = match self.state {
                State::Before => self.begin(bytes)?,
                State::Structure => self.structure(bytes)?,
                State::Text => self.text(bytes)?,
                State::Scalar => self.scalar(bytes)?,
            };
            if finished == Finished::Yes {
                return Some(self.seen);
            }
        }
    }

    /// Looks at the first byte that is not white space: it says what kind of value this is.
    fn begin(&mut self, bytes: &[u8]) -> Option<Finished> {
        let at = skip_whitespace(bytes, self.seen);
        self.seen = at;
        let byte = *bytes.get(at)?;
        self.seen = at + 1;
        match byte {
            b'"' => self.state = State::Text,
            b'{' | b'[' => {
                self.depth = 1;
                self.state = State::Structure;
            }
            b'}' | b']' => return Some(Finished::Yes),
            _ => self.state = State::Scalar,
        }
        Some(Finished::No)
    }

    /// Goes through brackets, and over strings that are short, which most are; nothing when the bytes end first.
    fn structure(&mut self, bytes: &[u8]) -> Option<Finished> {
        let (mut at, mut depth) = (self.seen, self.depth);
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => match short_text(bytes, at) {
                    Some(end) => at = end,
                    None => {
                        (self.seen, self.depth, self.state) = (at, depth, State::Text);
                        return Some(Finished::No);
                    }
                },
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        (self.seen, self.depth) = (at, depth);
                        return Some(Finished::Yes);
                    }
                }
                _ => {}
            }
        }
        (self.seen, self.depth) = (at, depth);
        None
    }

    /// Goes to the end of a number or a word; nothing when the bytes end first, for then more of it may come.
    fn scalar(&mut self, bytes: &[u8]) -> Option<Finished> {
        while !ends_scalar(*bytes.get(self.seen)?) {
            self.seen += 1;
        }
        Some(Finished::Yes)
    }

    /// Goes to the end of a string; nothing when the bytes end first.
    fn text(&mut self, bytes: &[u8]) -> Option<Finished> {
        let Some(found) = memchr2(b'"', b'\\', &bytes[self.seen..]) else {
            self.seen = bytes.len();
            return None;
        };
        let at = self.seen + found;
        if bytes[at] == b'\\' {
            if at + 1 >= bytes.len() {
                self.seen = at;
                return None;
            }
            self.seen = at + 2;
            return Some(Finished::No);
        }
        self.seen = at + 1;
        self.state = State::Structure;
        Some(Finished::when(self.depth == 0))
    }
}

#[derive(PartialEq)]
enum Finished {
    Yes,
    No,
}

impl Finished {
    fn when(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// The end of a string that begins at `at`, after its quote, if it is near and nothing is escaped before it. Short
/// strings are read faster byte by byte than by a search that is made for long ones.
fn short_text(bytes: &[u8], at: usize) -> Option<usize> {
    let near = bytes.get(at..)?.iter().take(SHORT);
    let found = near
        .enumerate()
        .find(|(_, byte)| matches!(byte, b'"' | b'\\'));
    match found {
        Some((length, b'"')) => Some(at + length + 1),
        _ => None,
    }
}

fn ends_scalar(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']' | b':')
}

/// One member of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    /// The name without its quotes, as it is written.
    pub(crate) name: Span,
    pub(crate) value: Span,
}

/// Walks the members of the object at `span`, or the elements of an array with [`Walk::element`].
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The bytes are no JSON of the expected shape.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(crate) struct Malformed;

impl<'a> Walk<'a> {
    /// Starts inside the container at `span`, whose first byte must be `open`.
    pub(crate) fn new(bytes: &'a [u8], span: Span, open: u8) -> Result<Self, Malformed> {
        let bytes = bytes.get(..span.end).ok_or(Malformed)?;
        let at = skip_whitespace(bytes, span.start);
        match bytes.get(at) {
            Some(byte) if *byte == open => Ok(Self { bytes, at: at + 1 }),
            _ => Err(Malformed),
        }
    }

    /// The next member of an object; nothing at its end.
    pub(crate) fn member(&mut self) -> Result<Option<Member>, Malformed> {
        let Some(name) = self.name()? else {
            return Ok(None);
        };
        let value = self.value()?;
        Ok(Some(Member { name, value }))
    }

    /// The name of the next member of an object, without its quotes; nothing at the end of the object. The value comes
    /// next: it has to be taken with [`value`](Walk::value), or walked through with [`inside`](Walk::inside).
    pub(crate) fn name(&mut self) -> Result<Option<Span>, Malformed> {
        if self.closes(b'}')? {
            return Ok(None);
        }
        let name = self.value()?;
        if self.bytes[name.start] != b'"' {
            return Err(Malformed);
        }
        self.at = skip_whitespace(self.bytes, self.at);
        if self.bytes.get(self.at) != Some(&b':') {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(Some(name.start + 1..name.end - 1))
    }

    /// Walks through the members of the object that comes next, instead of skipping it first.
    pub(crate) fn inside(&mut self, mut visit: impl FnMut(Member)) -> Result<(), Malformed> {
        let mut inner = Walk::new(self.bytes, self.at..self.bytes.len(), b'{')?;
        while let Some(member) = inner.member()? {
            visit(member);
        }
        self.at = inner.at;
        Ok(())
    }

    /// Where the walk stands: after what it returned last.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn closes(&mut self, close: u8) -> Result<bool, Malformed> {
        self.at = skip_whitespace(self.bytes, self.at);
        if self.bytes.get(self.at) == Some(&b',') {
            self.at = skip_whitespace(self.bytes, self.at + 1);
        }
        match self.bytes.get(self.at) {
            None => Err(Malformed),
            Some(byte) if *byte == close => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }

    /// The value that comes next.
    pub(crate) fn value(&mut self) -> Result<Span, Malformed> {
        let start = skip_whitespace(self.bytes, self.at);
        let rest = self.bytes.get(start..).ok_or(Malformed)?;
        let length = Skip::default().end(rest).ok_or(Malformed)?;
        if length == 0 {
            return Err(Malformed);
        }
        self.at = start + length;
        Ok(start..self.at)
    }
}

/// The first position from `at` on that is not white space.
pub(crate) fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The text of a JSON string, escapes resolved; nothing when it is not a string.
pub(crate) fn text(bytes: &[u8], span: Span) -> Option<std::borrow::Cow<'_, str>> {
    use std::borrow::Cow;
    let raw = bytes.get(span)?;
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        return serde_json::from_slice::<String>(raw).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            r#"[a-z"\\{}\[\],: é]{0,8}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(r#"[a-z"\\]{0,4}"#, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn skip_finds_the_end_however_the_bytes_arrive(value in value(), step in 1_usize..7) {
            let text = serde_json::to_vec(&value).expect("a value can be written");
            let mut followed = text.clone();
            followed.extend_from_slice(b",1");
            let mut skip = Skip::default();
            let mut end = None;
            let mut have = 0;
            while end.is_none() && have < followed.len() {
                have = (have + step).min(followed.len());
                end = skip.end(&followed[..have]);
            }
            prop_assert_eq!(end, Some(text.len()));
        }

        #[test]
        fn walk_finds_every_member(map in prop::collection::btree_map("[a-z]{1,4}", value(), 0..5)) {
            let text = serde_json::to_vec(&map).expect("a map can be written");
            let mut walk = Walk::new(&text, 0..text.len(), b'{').expect("it is an object");
            let mut found = std::collections::BTreeMap::new();
            while let Some(member) = walk.member().expect("it is sound") {
                let name = String::from_utf8(text[member.name].to_vec()).expect("ascii");
                let value: Value = serde_json::from_slice(&text[member.value]).expect("a value");
                found.insert(name, value);
            }
            prop_assert_eq!(found, map);
        }

        #[test]
        fn walk_ends_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(mut walk) = Walk::new(&bytes, 0..bytes.len(), b'{') {
                while let Ok(Some(_)) = walk.member() {}
            }
        }
    }
}
