//! GET of a collection: selection, pages, and bodies made from stored bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use kubewright_schema::selector::{FieldSelector, LabelSelector, Labels};
use serde_json::Value;

use super::call::Call;
use super::options::{ListOptions, Version};
use super::token::Token;
use crate::http::accept::{Format, Representation};
use crate::http::respond::{self, Answer};
use crate::printers::{Headers, ListMetadata, PartialList, Table};
use crate::resource::{Nature, Served};
use crate::status::ApiError;
use crate::storage::{At, Pairs, Record, SnapshotError};

/// A list is sent in pieces of about this size.
const CHUNK: usize = 64 * 1024;

/// The objects of one page.
pub(crate) struct Selection {
    pub(crate) records: Vec<Arc<Record>>,
    pub(crate) revision: u64,
    /// Where the next page starts.
    pub(crate) from: Option<Token>,
    /// How many objects come after this page, when that is known.
    pub(crate) remaining: Option<usize>,
}

/// Which objects a client wants to see.
#[derive(Debug)]
pub(crate) struct Matcher {
    labels: LabelSelector,
    fields: FieldSelector,
    /// The one object that the path names.
    name: Option<String>,
    /// `namespace/`, or empty for all.
    prefix: String,
}

impl Matcher {
    /// Reads the selectors; unknown fields are refused.
    pub(crate) fn new(call: &Call, options: &ListOptions) -> Result<Self, ApiError> {
        for term in options.fields.terms() {
            call.served.check_field_label(&term.field)?;
        }
        let name = (!call.name.is_empty()).then(|| call.name.clone());
        let prefix = match &call.namespace {
            Some(namespace) if call.served.is_namespaced() => format!("{namespace}/"),
            _ => String::new(),
        };
        Ok(Self {
            labels: options.labels.clone(),
            fields: options.fields.clone(),
            name,
            prefix,
        })
    }

    /// Whether a client that asked so sees this object.
    pub(crate) fn matches(&self, record: &Record) -> bool {
        record.key().starts_with(&self.prefix) && self.selects(record)
    }

    fn selects(&self, record: &Record) -> bool {
        let field = |name: &str| match name {
            "metadata.name" => Some(record.name()),
            "metadata.namespace" => Some(record.namespace().unwrap_or("")),
            other => record.fields().get(other),
        };
        self.name
            .as_deref()
            .is_none_or(|name| name == record.name())
            && self.labels.matches(record.labels())
            && self.fields.matches(field)
    }

    fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.name.is_none()
    }

    /// The one key that can match, when the selector names an object.
    fn single_key(&self, namespaced: bool) -> Option<String> {
        let name = self
            .name
            .as_deref()
            .or_else(|| self.fields.exact("metadata.name"))?;
        match (namespaced, self.prefix.is_empty()) {
            (true, true) => None,
            _ => Some(format!("{}{name}", self.prefix)),
        }
    }
}

/// Answers with a list.
pub(crate) async fn list(call: &mut Call) -> Result<Answer, ApiError> {
    let options = ListOptions::read(&call.query)?;
    let page = select(call, &options).await?;
    answer(call, page)
}

/// Finds the objects of a page.
pub(crate) async fn select(call: &Call, options: &ListOptions) -> Result<Selection, ApiError> {
    let matcher = Matcher::new(call, options)?;
    if let Version::NotOlderThan(revision) | Version::Exact(revision) = options.version {
        call.core.wait_until_fresh(revision).await?;
    }
    let at = match (&options.from, options.version) {
        (
            Some(Token {
                revision: Some(revision),
                ..
            }),
            _,
        ) => At::Revision(*revision),
        (None, Version::Exact(revision)) => At::Revision(revision),
        _ => At::Latest,
    };
    let snapshot =
        call.served
            .collection
            .snapshot(at)
            .map_err(|error| match (error, &options.from) {
                (SnapshotError::Expired { .. }, Some(token)) => ApiError::expired_continue(
                    Token {
                        revision: None,
                        after: token.after.clone(),
                    }
                    .encode(),
                ),
                (SnapshotError::Expired { .. }, None) => {
                    ApiError::expired("The resourceVersion for the provided list is too old.")
                }
                (SnapshotError::Future { current }, _) => {
                    ApiError::too_large_version(asked(at), current)
                }
            })?;
    let revision = snapshot.revision();
    if let Some(key) = matcher.single_key(call.served.is_namespaced()) {
        let found = snapshot.get(&key).filter(|r| matcher.matches(r)).cloned();
        return Ok(Selection {
            records: found.into_iter().collect(),
            revision,
            from: None,
            remaining: None,
        });
    }
    let after = options
        .from
        .as_ref()
        .map(|token| format!("{}{}", matcher.prefix, token.after));
    let mut found = snapshot
        .range(&matcher.prefix, after.as_deref())
        .filter(|r| matcher.selects(r));
    let limit = options.limit.unwrap_or(usize::MAX);
    let records: Vec<Arc<Record>> = found.by_ref().take(limit).cloned().collect();
    let more = found.next().is_some();
    let last = records.last().filter(|_| more);
    let from = last.map(|last| Token {
        revision: Some(revision),
        after: last.key()[matcher.prefix.len()..].to_owned(),
    });
    if more {
        // The next page is likely to be asked for at this very version.
        snapshot.pin();
    }
    let remaining = (more && matcher.is_everything()).then(|| 1 + found.count());
    Ok(Selection {
        records,
        revision,
        from,
        remaining,
    })
}

fn asked(at: At) -> u64 {
    match at {
        At::Revision(revision) => revision,
        At::Latest => 0,
    }
}

/// Writes a page in the representation asked for.
pub(crate) fn answer(call: &Call, page: Selection) -> Result<Answer, ApiError> {
    let (revision, token) = (
        page.revision.to_string(),
        page.from.as_ref().map(Token::encode).unwrap_or_default(),
    );
    let meta = ListMetadata {
        resource_version: &revision,
        continue_token: &token,
        remaining_item_count: page.remaining.map(|n| n as i64),
    };
    let served = &call.served;
    match call.accept.representation {
        Representation::Object | Representation::Discovery(_) => {
            objects(call, &page.records, &meta)
        }
        Representation::PartialMetadata(version) => {
            let mut list = PartialList::new(&meta, version);
            for record in &page.records {
                list.item(&served.revive(record)?);
            }
            Ok(respond::json(
                StatusCode::OK,
                call.accept.format,
                list.finish().into(),
            ))
        }
        Representation::Table(version) => {
            let (options, now) = (call.table_options(version)?, call.core.environment.now());
            let mut table = Table::new(&served.printer, options, Headers::Shown, &meta, now);
            for record in &page.records {
                let body = served.body(record)?;
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                table.row(&object, &body);
            }
            Ok(respond::json(
                StatusCode::OK,
                call.accept.format,
                table.finish().into(),
            ))
        }
    }
}

fn objects(
    call: &Call,
    records: &[Arc<Record>],
    meta: &ListMetadata<'_>,
) -> Result<Answer, ApiError> {
    let body = ListBody::new(&call.served, records, meta)?;
    if call.accept.format == Format::Json {
        return Ok(respond::answer(
            StatusCode::OK,
            "application/json",
            body.boxed_unsync(),
        ));
    }
    Ok(respond::json(
        StatusCode::OK,
        call.accept.format,
        body.into_bytes(),
    ))
}

/// A list as a body: stored bytes between a head and a tail, put together piece by piece while it is sent.
struct ListBody {
    head: Bytes,
    /// What stands before each item: the brace that was cut off with the item's type.
    open: &'static [u8],
    items: std::vec::IntoIter<Bytes>,
    first: bool,
    tail: Option<Bytes>,
    left: usize,
}

impl ListBody {
    fn new(
        served: &Served,
        records: &[Arc<Record>],
        meta: &ListMetadata<'_>,
    ) -> Result<Self, ApiError> {
        let api_version = served.api_version.as_str();
        let prefix = format!(
            r#"{{"kind":"{}","apiVersion":"{api_version}","#,
            served.resource.kind
        );
        let builtin = matches!(served.nature, Nature::Builtin(_));
        let mut items = Vec::with_capacity(records.len());
        for record in records {
            let body = served.body(record)?;
            // Items of built-in lists do not repeat their type.
            let typed = builtin && body.starts_with(prefix.as_bytes());
            items.push(if typed {
                body.slice(prefix.len()..)
            } else {
                body
            });
        }
        let (head, tail) = envelope(served, api_version, meta, builtin);
        let open: &'static [u8] = if builtin { b"{" } else { b"" };
        let commas = items.len().saturating_sub(1);
        let left = head.len()
            + tail.len()
            + commas
            + items.iter().map(|i| i.len() + open.len()).sum::<usize>();
        Ok(Self {
            head,
            open,
            items: items.into_iter(),
            first: true,
            tail: Some(tail),
            left,
        })
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

    fn into_bytes(mut self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.left);
        while let Some(chunk) = self.next_chunk() {
            all.extend_from_slice(&chunk);
        }
        all.freeze()
    }
}

/// What stands around the items. Custom lists have their fields in alphabetical order, as custom objects do.
fn envelope(
    served: &Served,
    api_version: &str,
    meta: &ListMetadata<'_>,
    builtin: bool,
) -> (Bytes, Bytes) {
    let kind = &served.resource.list_kind;
    let (head, tail) = if builtin {
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

impl Labels for Pairs {
    fn value_of(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
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
