//! GET of a collection: selection, pages, and bodies made from stored bytes.

mod body;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::Value;

use body::ListBody;

use super::call::Call;
use super::matcher::Matcher;
use super::options::{ListOptions, Version};
use super::token::Token;
use crate::flow::{Progress, Slices};
use crate::http::accept::{Format, Representation};
use crate::http::respond::{self, Answer};
use crate::printers::{Headers, ListMetadata, PartialList, Table};
use crate::status::ApiError;
use crate::storage::{At, Record, Snapshot, SnapshotError};

/// A list of this size is written in other formats than JSON on a thread of its own.
const LARGE: usize = 256 * 1024;

/// The objects of one page.
pub(crate) struct Selection {
    pub(crate) records: Vec<Arc<Record>>,
    pub(crate) revision: u64,
    /// Where the next page starts.
    pub(crate) from: Option<Token>,
    /// How many objects come after this page, when that is known.
    pub(crate) remaining: Option<usize>,
}

/// Answers with a list.
pub(crate) async fn list(call: &Call) -> Result<Answer, ApiError> {
    let options = ListOptions::read(&call.query)?;
    let page = select(call, &options).await?;
    answer(call, page).await
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
    let converter = &call.core.converter;
    if let Some(key) = matcher.single_key(call.served.is_namespaced()) {
        let found = snapshot.get(&key).filter(|r| matcher.may_match(r)).cloned();
        return Ok(Selection {
            records: matcher
                .decide(converter, found.into_iter().collect())
                .await?,
            revision: snapshot.revision(),
            from: None,
            remaining: None,
        });
    }
    page(call, &snapshot, &matcher, options).await
}

/// The objects of one page of a snapshot. A collection can be large, so this is done in slices.
async fn page(
    call: &Call,
    snapshot: &Snapshot,
    matcher: &Matcher,
    options: &ListOptions,
) -> Result<Selection, ApiError> {
    let slices = &call.core.flow.slices;
    let after = options
        .from
        .as_ref()
        .map(|token| format!("{}{}", matcher.prefix(), token.after));
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut all = snapshot.range(matcher.prefix(), after.as_deref());
    let (mut records, mut more) = (Vec::new(), false);
    while !more {
        // One beyond the limit shows that there are more.
        let wanted = (limit - records.len()).saturating_add(1);
        let wanted = wanted.max(matcher.least_at_once());
        let (candidates, ended) = candidates(slices, &mut all, matcher, wanted).await;
        let chosen = matcher.decide(&call.core.converter, candidates).await?;
        records.extend(chosen);
        more = records.len() > limit;
        records.truncate(limit);
        if ended {
            break;
        }
    }
    let remaining = match &after {
        _ if !more || !matcher.is_everything() => None,
        // The first page need not count.
        None => Some(snapshot.count(matcher.prefix()) - records.len()),
        _ => {
            let mut count = 1;
            let counted = slices.run(|| match all.next() {
                Some(_) => {
                    count += 1;
                    Progress::More
                }
                None => Progress::Done,
            });
            counted.await;
            Some(count)
        }
    };
    let last = records.last().filter(|_| more);
    let from = last.map(|last: &Arc<Record>| Token {
        revision: Some(snapshot.revision()),
        after: last.key()[matcher.prefix().len()..].to_owned(),
    });
    if more {
        // The next page is likely to be asked for at this very version.
        snapshot.pin();
    }
    Ok(Selection {
        records,
        revision: snapshot.revision(),
        from,
        remaining,
    })
}

/// The next so many objects that may match, and whether the snapshot ended with them.
async fn candidates<'a>(
    slices: &Slices,
    all: &mut impl Iterator<Item = &'a Arc<Record>>,
    matcher: &Matcher,
    wanted: usize,
) -> (Vec<Arc<Record>>, bool) {
    let (mut found, mut ended) = (Vec::new(), false);
    let step = || match all.next() {
        None => {
            ended = true;
            Progress::Done
        }
        Some(record) if !matcher.may_select(record) => Progress::More,
        Some(record) => {
            found.push(record.clone());
            if found.len() < wanted {
                Progress::More
            } else {
                Progress::Done
            }
        }
    };
    slices.run(step).await;
    (found, ended)
}

fn asked(at: At) -> u64 {
    match at {
        At::Revision(revision) => revision,
        At::Latest => 0,
    }
}

/// Writes a page in the representation asked for.
pub(crate) async fn answer(call: &Call, page: Selection) -> Result<Answer, ApiError> {
    let (revision, token) = (
        page.revision.to_string(),
        page.from.as_ref().map(Token::encode).unwrap_or_default(),
    );
    let meta = ListMetadata {
        resource_version: &revision,
        continue_token: &token,
        remaining_item_count: page.remaining.map(|n| n as i64),
    };
    let (served, slices) = (&call.served, &call.core.flow.slices);
    let bodies = call.core.converter.bodies(served, &page.records).await?;
    match call.accept.representation {
        Representation::Object | Representation::Discovery(_) => {
            Ok(objects(call, bodies, &meta).await)
        }
        Representation::PartialMetadata(version) => {
            let mut list = PartialList::new(&meta, version);
            let item = |body: &Bytes| {
                let object: Value = serde_json::from_slice(body).map_err(ApiError::internal)?;
                list.item(&object);
                Ok::<_, ApiError>(())
            };
            slices.try_map(bodies.iter(), item).await?;
            Ok(formatted(call, list.finish().into()).await)
        }
        Representation::Table(version) => {
            let (options, now) = (call.table_options(version)?, call.core.environment.now());
            let mut table = Table::new(&served.printer, options, Headers::Shown, &meta, now);
            let row = |body: &Bytes| {
                let object: Value = serde_json::from_slice(body).map_err(ApiError::internal)?;
                table.row(&object, body);
                Ok::<_, ApiError>(())
            };
            slices.try_map(bodies.iter(), row).await?;
            Ok(formatted(call, table.finish().into()).await)
        }
    }
}

async fn objects(call: &Call, bodies: Vec<Bytes>, meta: &ListMetadata<'_>) -> Answer {
    let body = ListBody::new(call, bodies, meta).await;
    if call.accept.format == Format::Json {
        return respond::answer(StatusCode::OK, "application/json", body.boxed_unsync());
    }
    formatted(call, body.into_bytes()).await
}

/// A list in the format asked for. A large one in another format than JSON takes a while.
async fn formatted(call: &Call, compact: Bytes) -> Answer {
    let format = call.accept.format;
    if format == Format::Json || compact.len() < LARGE {
        return respond::json(StatusCode::OK, format, compact);
    }
    let write = move || respond::json(StatusCode::OK, format, compact);
    call.core.flow.slices.offload(write).await
}
