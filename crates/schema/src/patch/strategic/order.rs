//! The order of merged lists: what the patch asks for, with the server's own items in between.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::StrategicError;
use super::error::go_type;

/// What makes an item of a list the same as another: the value of its merge key, or the item itself.
pub(super) fn identity(item: &Value, merge_key: Option<&str>) -> Result<String, StrategicError> {
    let Some(key) = merge_key else {
        return Ok(item.to_string());
    };
    let members = item
        .as_object()
        .ok_or_else(|| StrategicError::NotAMap(go_type(item)))?;
    members
        .get(key)
        .map(Value::to_string)
        .ok_or_else(|| StrategicError::no_merge_key(members, key))
}

/// The identities of all items.
pub(super) fn identities(
    items: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<String>, StrategicError> {
    items.iter().map(|item| identity(item, merge_key)).collect()
}

/// Where items stand in a list. Of items with one identity the first counts.
pub(super) struct Order {
    positions: HashMap<String, usize>,
}

impl Order {
    pub(super) fn of(items: &[Value], merge_key: Option<&str>) -> Result<Self, StrategicError> {
        Ok(Self::of_identities(identities(items, merge_key)?))
    }

    fn of_identities(identities: impl IntoIterator<Item = String>) -> Self {
        let mut positions = HashMap::new();
        for (at, identity) in identities.into_iter().enumerate() {
            positions.entry(identity).or_insert(at);
        }
        Self { positions }
    }

    /// The order of the server after a merge.
    ///
    /// The API server puts new items into the room that deleted ones leave. So as many new items as were deleted
    /// count as the last ones of the server, and what only the server has stays before them.
    pub(super) fn after_merge(before: Vec<String>, patch: Vec<String>, merged: &Self) -> Self {
        let length = before.len();
        let mut order: Vec<String> = before;
        order.retain(|identity| merged.position(identity).is_some());
        let known: HashSet<String> = order.iter().cloned().collect();
        let new = patch.into_iter().filter(|id| !known.contains(id));
        let room = length - order.len();
        order.extend(new.take(room));
        Self::of_identities(order)
    }

    fn position(&self, identity: &str) -> Option<usize> {
        self.positions.get(identity).copied()
    }
}

/// An item with its identity and its place among its own kind.
struct Placed {
    identity: String,
    place: usize,
    item: Value,
}

/// Orders a merged list.
///
/// Items in `wanted` come in that order, the others in the order of the server. The others are then put in
/// one by one: each goes before the first wanted item that follows it on the server.
pub(super) fn arrange(
    items: Vec<Value>,
    wanted: &Order,
    server: &Order,
    merge_key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let (mut asked, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let identity = identity(&item, merge_key)?;
        let (place, group) = match wanted.position(&identity) {
            Some(place) => (place, &mut asked),
            None => (
                server.position(&identity).unwrap_or(usize::MAX),
                &mut others,
            ),
        };
        group.push(Placed {
            identity,
            place,
            item,
        });
    }
    asked.sort_by_key(|placed| placed.place);
    others.sort_by_key(|placed| placed.place);
    Ok(interleave(others, asked, server))
}

fn interleave(others: Vec<Placed>, asked: Vec<Placed>, server: &Order) -> Vec<Value> {
    let mut arranged = Vec::with_capacity(others.len() + asked.len());
    let mut others = others.into_iter().peekable();
    for placed in asked {
        // An item that is new to the server comes before everything that is left.
        if let Some(limit) = server.position(&placed.identity) {
            while let Some(other) = others.next_if(|other| other.place < limit) {
                arranged.push(other.item);
            }
        }
        arranged.push(placed.item);
    }
    arranged.extend(others.map(|other| other.item));
    arranged
}

/// Refuses a list of the patch whose items are not a part of `$setElementOrder`, in the same order.
pub(super) fn check(
    identities: &[String],
    patch: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), StrategicError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for wanted in identities {
        loop {
            let next = rest
                .next()
                .ok_or_else(|| StrategicError::order_mismatch(patch, order))?;
            if identity(next, merge_key)? == *wanted {
                break;
            }
        }
    }
    Ok(())
}
