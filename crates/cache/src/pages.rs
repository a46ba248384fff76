//! Reads a list while it arrives: each item is handed on as soon as it is complete, so that no list is ever in
//! memory as a whole.

use bytes::{Buf, BytesMut};

use crate::json::{Malformed, Skip, skip_whitespace, text};
use crate::parse::TypeMeta;

/// One item or field with more bytes than this is refused.
const LARGEST: usize = 256 << 20;

/// What a list says besides its items.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PageEnd {
    pub(crate) kind: String,
    pub(crate) resource_version: String,
    pub(crate) continue_token: String,
}

/// Reads one list.
#[derive(Debug, Default)]
pub(crate) struct PageReader {
    buffer: BytesMut,
    state: State,
    /// How far the value at the start of the buffer has been looked at.
    skip: Skip,
    /// The name of the field whose value is being read.
    field: String,
    api_version: String,
    end: PageEnd,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Open,
    Name,
    Colon,
    Value,
    Item,
    Closed,
}

/// Whether there is more to do with the bytes at hand.
enum Progress {
    Made,
    Waiting,
}

impl PageReader {
    /// Takes the next bytes and hands on the items that are complete.
    ///
    /// # Errors
    /// When the bytes are not a list.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut item: impl FnMut(&[u8], Option<&TypeMeta>),
    ) -> Result<(), Malformed> {
        self.buffer.extend_from_slice(bytes);
        // Made once for all items of these bytes; made anew when the items begin in the middle of them.
        let mut types = self.types();
        loop {
            let before = self.state;
            if let Progress::Waiting = self.step(&mut item, types.as_ref())? {
                return Ok(());
            }
            if before != State::Item && self.state == State::Item {
                types = self.types();
            }
        }
    }

    /// The metadata of the list, once it is complete.
    ///
    /// # Errors
    /// When it is not.
    pub(crate) fn finish(self) -> Result<PageEnd, Malformed> {
        match self.state {
            State::Closed => Ok(self.end),
            _ => Err(Malformed),
        }
    }

    fn step(
        &mut self,
        item: &mut impl FnMut(&[u8], Option<&TypeMeta>),
        types: Option<&TypeMeta>,
    ) -> Result<Progress, Malformed> {
        if self.skip.is_fresh() {
            let blank = skip_whitespace(&self.buffer, 0);
            self.buffer.advance(blank);
        }
        let Some(&first) = self.buffer.first() else {
            return Ok(Progress::Waiting);
        };
        match (self.state, first) {
            (State::Closed, _) => Err(Malformed),
            (State::Open, b'{') => Ok(self.go(State::Name)),
            (State::Name | State::Item, b',') if self.skip.is_fresh() => Ok(self.go(self.state)),
            (State::Name, b'}') => Ok(self.go(State::Closed)),
            (State::Item, b']') => Ok(self.go(State::Name)),
            (State::Colon, b':') => Ok(self.go(State::Value)),
            (State::Value, b'[') if self.field == "items" => Ok(self.go(State::Item)),
            (State::Open | State::Colon, _) => Err(Malformed),
            (State::Name | State::Value | State::Item, _) => self.value(item, types),
        }
    }

    /// Steps over one byte of structure.
    fn go(&mut self, state: State) -> Progress {
        self.buffer.advance(1);
        self.state = state;
        Progress::Made
    }

    /// Takes a whole value from the buffer, if it is there.
    fn value(
        &mut self,
        item: &mut impl FnMut(&[u8], Option<&TypeMeta>),
        types: Option<&TypeMeta>,
    ) -> Result<Progress, Malformed> {
        let Some(length) = self.skip.end(&self.buffer) else {
            let fits = self.buffer.len() <= LARGEST;
            return fits.then_some(Progress::Waiting).ok_or(Malformed);
        };
        if length == 0 {
            return Err(Malformed);
        }
        self.skip = Skip::default();
        match self.state {
            State::Item => item(&self.buffer[..length], types),
            State::Name => {
                let name = text(&self.buffer, 0..length).ok_or(Malformed)?;
                self.field = name.into_owned();
                self.state = State::Colon;
            }
            _ => {
                self.note(length)?;
                self.state = State::Name;
            }
        }
        self.buffer.advance(length);
        Ok(Progress::Made)
    }

    /// Notes a field of the list.
    fn note(&mut self, length: usize) -> Result<(), Malformed> {
        #[derive(serde::Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
            r#continue: String,
        }
        let value = &self.buffer[..length];
        let as_text = || text(value, 0..length).map(|t| t.into_owned());
        match self.field.as_str() {
            "kind" => self.end.kind = as_text().ok_or(Malformed)?,
            "apiVersion" => self.api_version = as_text().ok_or(Malformed)?,
            "metadata" => {
                let read: Metadata = serde_json::from_slice(value).map_err(|_| Malformed)?;
                self.end.resource_version = read.resource_version;
                self.end.continue_token = read.r#continue;
            }
            _ => {}
        }
        Ok(())
    }

    /// The kind of the items, if it has been read by now.
    fn types(&self) -> Option<TypeMeta> {
        let kind = self.end.kind.strip_suffix("List")?;
        (!kind.is_empty() && !self.api_version.is_empty()).then(|| TypeMeta {
            api_version: self.api_version.clone(),
            kind: kind.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"t"},"items":[{"a":"}]"},{"b":[1,{}]} , {"c":"\""}]}
"#;

    fn read(list: &str, step: usize) -> Result<(Vec<String>, PageEnd), Malformed> {
        let mut reader = PageReader::default();
        let mut items = Vec::new();
        for chunk in list.as_bytes().chunks(step) {
            reader.feed(chunk, |item, types| {
                let kind = types.map_or("", |t| &t.kind);
                items.push(format!("{kind} {}", String::from_utf8_lossy(item)));
            })?;
        }
        Ok((items, reader.finish()?))
    }

    #[test]
    fn items_come_whole_however_the_bytes_are_cut() {
        for step in 1..LIST.len() {
            let (items, end) = read(LIST, step).expect("it is a list");
            assert_eq!(
                items,
                [
                    r#"Pod {"a":"}]"}"#,
                    r#"Pod {"b":[1,{}]}"#,
                    r#"Pod {"c":"\""}"#
                ]
            );
            assert_eq!((&*end.resource_version, &*end.continue_token), ("7", "t"));
        }
    }

    #[test]
    fn items_may_come_before_the_metadata_or_be_null() {
        let (items, end) = read(
            r#"{"items":[{"a":1}],"metadata":{"resourceVersion":"7"}}"#,
            3,
        )
        .expect("a list");
        assert_eq!((items.len(), &*end.resource_version), (1, "7"));
        let (items, end) =
            read(r#"{"items":null,"metadata":{"resourceVersion":"8"}}"#, 3).expect("a list");
        assert_eq!((items.len(), &*end.resource_version), (0, "8"));
    }

    #[test]
    fn list_that_is_cut_or_no_list_is_refused() {
        let text = LIST.trim_end();
        for end in 0..text.len() {
            assert!(read(&text[..end], 7).is_err(), "{end}");
        }
        for text in ["[]", "x", r#"{"items"[]}"#, r#"{"a":1}}"#] {
            assert!(read(text, 2).is_err(), "{text}");
        }
    }
}
