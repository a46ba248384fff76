//! Decides what becomes of an event: a new one, a count on an old one, or nothing. Pure; client-go's three stages.
//!
//! 1. The tenth event within ten minutes that differs from others in nothing but its message, and all that follow, are
//!    combined into one.
//! 2. The same event again counts on the first.
//! 3. One source gets 25 events on one object, and then one in five minutes. What is cut still counts.
//!
//! These numbers are the defaults of [`Limits`].

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;

use super::recent::Recent;
use super::{MESSAGE, Occurrence, cut};

/// Sources differ in their names by less than a millisecond, in nanoseconds.
const OFFSETS: u64 = 1_000_000;

const COMBINED: &str = "(combined from similar events): ";

/// How many events are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// So many different messages are similar events.
    pub(super) similar: usize,
    /// Similar events are forgotten after this time without another.
    pub(super) interval: Duration,
    /// So many events at once on one object.
    pub(super) burst: u32,
    /// Then one each time that this has passed; none at all for no limit.
    pub(super) refill: Duration,
}

impl Default for Limits {
    /// The limits of client-go.
    fn default() -> Self {
        Self {
            similar: 10,
            interval: Duration::from_secs(600),
            burst: 25,
            refill: Duration::from_secs(300),
        }
    }
}

/// What to write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    /// Create this event: nothing like it was recorded lately.
    Create(Record),
    /// Raise the count of an event that exists.
    Patch(Record),
    /// Write nothing: the source records too many events.
    Skip,
}

/// An event as it is to be on the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) occurrence: Occurrence,
    pub(super) count: i32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// What was recorded lately, of one source.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    similar: Recent<Similar>,
    counted: Recent<Counted>,
    allowances: Recent<Allowance>,
    /// The number in the latest name. Names grow even if the clock does not.
    latest: i128,
    /// What this source adds to the time in names: another source may record about the same object at the same moment, which
    /// happens whenever the clock stands still.
    offset: i128,
    limits: Limits,
}

#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Timestamp,
}

#[derive(Debug)]
struct Counted {
    name: String,
    count: i32,
    first: Timestamp,
}

#[derive(Debug)]
struct Allowance {
    left: f64,
    at: Timestamp,
}

impl Correlator {
    /// A correlator of one source.
    pub(super) fn of(component: &str, instance: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (component, instance).hash(&mut hasher);
        Self {
            offset: i128::from(hasher.finish() % OFFSETS),
            ..Self::default()
        }
    }

    /// The same correlator with other limits.
    pub(super) fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Takes note of an event, and says what to write.
    pub(super) fn observe(&mut self, now: Timestamp, occurrence: Occurrence) -> Write {
        let (occurrence, key) = self.combine(now, occurrence);
        let record = self.count(now, occurrence, &key);
        if !self.allows(now, &source_key(&record.occurrence)) {
            return Write::Skip;
        }
        match record.count {
            1 => Write::Create(record),
            _ => Write::Patch(record),
        }
    }

    /// The event, or the one it is combined into, and what it is counted under.
    fn combine(&mut self, now: Timestamp, mut occurrence: Occurrence) -> (Occurrence, String) {
        let key = similar_key(&occurrence);
        let similar = self.similar.entry(&key, || Similar {
            messages: BTreeSet::new(),
            last: now,
        });
        if seconds_between(similar.last, now) > self.limits.interval.as_secs_f64() {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(occurrence.message.clone());
        if similar.messages.len() < self.limits.similar {
            let key = [&key, occurrence.message.as_str()].join("\0");
            return (occurrence, key);
        }
        // One goes, so that the set does not grow and the next new message is combined as well.
        similar.messages.pop_first();
        let combined = format!("{COMBINED}{}", occurrence.message);
        occurrence.message = cut(&combined, MESSAGE).into();
        (occurrence, key)
    }

    fn count(&mut self, now: Timestamp, occurrence: Occurrence, key: &str) -> Record {
        let stamp = (now.as_nanosecond() + self.offset).max(self.latest + 1);
        let object = occurrence.reference.name.as_deref().unwrap_or_default();
        let counted = self.counted.entry(key, || Counted {
            name: event_name(object, stamp),
            count: 0,
            first: now,
        });
        counted.count = counted.count.saturating_add(1);
        if counted.count == 1 {
            self.latest = stamp;
        }
        let namespace = occurrence.reference.namespace.clone();
        Record {
            name: counted.name.clone(),
            namespace: namespace
                .filter(|n| !n.is_empty())
                .unwrap_or("default".into()),
            occurrence,
            count: counted.count,
            first: counted.first,
            last: now,
        }
    }

    fn allows(&mut self, now: Timestamp, key: &str) -> bool {
        let Limits { burst, refill, .. } = self.limits;
        if refill.is_zero() {
            return true;
        }
        let burst = f64::from(burst);
        let allowance = self.allowances.entry(key, || Allowance {
            left: burst,
            at: now,
        });
        let earned = seconds_between(allowance.at, now) / refill.as_secs_f64();
        allowance.left = (allowance.left + earned).min(burst);
        allowance.at = allowance.at.max(now);
        let allowed = allowance.left >= 1.0;
        if allowed {
            allowance.left -= 1.0;
        }
        allowed
    }
}

/// Seconds from `a` to `b`; none if the clock went back.
fn seconds_between(a: Timestamp, b: Timestamp) -> f64 {
    b.duration_since(a).as_secs_f64().max(0.0)
}

/// Who records, and about which object.
fn source_key(occurrence: &Occurrence) -> String {
    let component = occurrence.component.as_deref().unwrap_or_default();
    [component, &reference_key(&occurrence.reference)].join("\0")
}

fn reference_key(reference: &ObjectReference) -> String {
    let parts = [
        &reference.kind,
        &reference.namespace,
        &reference.name,
        &reference.uid,
        &reference.api_version,
    ];
    parts
        .map(|part| part.as_deref().unwrap_or_default())
        .join("\0")
}

fn similar_key(occurrence: &Occurrence) -> String {
    let field = occurrence.reference.field_path.as_deref();
    let source = source_key(occurrence);
    let kind = occurrence.kind.as_str();
    let action = occurrence.action.as_deref().unwrap_or_default();
    let related = occurrence.related.as_deref().map(reference_key);
    let parts = [
        &source,
        field.unwrap_or_default(),
        kind,
        &occurrence.reason,
        action,
        related.as_deref().unwrap_or_default(),
    ];
    parts.join("\0")
}

/// The object's name and the time, as in client-go; names that no event may have are left out.
fn event_name(object: &str, stamp: i128) -> String {
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends_well = object.starts_with(lower) && object.ends_with(lower);
    let sound = object.split('.').all(|label| {
        label.starts_with(lower)
            && label.ends_with(lower)
            && label.chars().all(|c| lower(c) || c == '-')
    });
    if sound && ends_well && object.len() <= 220 {
        format!("{object}.{stamp:x}")
    } else {
        format!("event.{stamp:x}")
    }
}
