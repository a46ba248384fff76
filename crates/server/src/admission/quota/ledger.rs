//! What quotas allow and what is used of them, kept in step with the commit log: a check costs the same however many
//! objects a namespace has.
//!
//! The objects of a namespace are counted once, when a quota of it is first needed; after that every change of an object
//! that counts changes the sum. The check that decides is made within the commit, under the store's lock, so nothing can
//! come between it and the write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::usage::Measure;
use super::{Terms, check, scope};
use crate::admission::attributes::AdmissionRequest;
use crate::admission::resources::{Amounts, add, subtract};
use crate::object;
use crate::registry::Resources;
use crate::storage::{At, Change, Event, Record};

const QUOTAS: &str = "resourcequotas";
/// Later than any time, so that every pod that is being deleted should be gone.
const NEVER: &str = "~";
/// Earlier than any time, so that no pod should be gone.
const BEFORE: &str = "";

/// The quotas of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<HashMap<String, Accounts>>);

/// The quotas of one namespace by name. There is at least one.
type Accounts = BTreeMap<String, Account>;

#[derive(Debug)]
struct Account {
    /// The revision of the quota that brought these terms, which tells them from earlier and later ones.
    since: u64,
    terms: Terms,
    usage: Usage,
}

#[derive(Debug)]
enum Usage {
    /// Nobody has asked yet.
    Unknown,
    /// The objects are being counted; these changes happen meanwhile.
    Counting(Vec<(u64, ObjectKey, Option<Charge>)>),
    Known(Sum),
}

/// A collection and a key in it.
type ObjectKey = (String, String);

/// What one object takes of a quota.
#[derive(Debug, Clone, PartialEq)]
struct Charge {
    amounts: Amounts,
    /// When it takes less without being changed: a pod that should be gone by then, and what it still takes.
    expires: Option<(String, Amounts)>,
}

/// What is used of a quota.
#[derive(Debug, Default)]
struct Sum {
    used: Amounts,
    /// `used` is the sum of these.
    charges: HashMap<ObjectKey, Charge>,
    /// The objects among `charges` that expire, by time.
    expiring: BTreeSet<(String, ObjectKey)>,
}

/// A write that may use more of a quota, to be checked.
#[derive(Debug)]
pub(crate) struct QuotaCheck {
    namespace: String,
    group: String,
    plural: String,
    /// Where the object is stored.
    object_key: ObjectKey,
    /// The object as it will be.
    object: Value,
    now: String,
}

/// Why a write was not allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuotaError {
    /// It would use too much; the text says of what.
    Exceeded(String),
    /// A quota is new: the objects of the namespace have to be counted first.
    Uncounted,
}

impl QuotaCheck {
    /// A write of an object that admission is asked about.
    pub(in crate::admission) fn new(
        request: &AdmissionRequest<'_>,
        namespace: &str,
        object: &Value,
        now: String,
    ) -> Self {
        let (served, resource) = (request.served, &request.served.resource);
        let key = served.key(Some(namespace), object::name(object));
        Self {
            namespace: namespace.to_owned(),
            group: resource.group.to_string(),
            plural: resource.plural.to_string(),
            object_key: (served.collection.name().to_owned(), key),
            object: object.clone(),
            now,
        }
    }

    pub(in crate::admission) fn measure(&self) -> Measure<'_> {
        Measure {
            group: &self.group,
            plural: &self.plural,
            now: &self.now,
        }
    }

    pub(crate) fn object(&self) -> &Value {
        &self.object
    }
}

impl Sum {
    fn put(&mut self, key: ObjectKey, charge: Option<Charge>) {
        if let Some(old) = self.charges.remove(&key) {
            subtract(&mut self.used, &old.amounts);
            if let Some((when, _)) = old.expires {
                self.expiring.remove(&(when, key.clone()));
            }
        }
        let Some(charge) = charge else {
            return;
        };
        add(&mut self.used, &charge.amounts);
        if let Some((when, _)) = &charge.expires {
            self.expiring.insert((when.clone(), key.clone()));
        }
        self.charges.insert(key, charge);
    }

    /// Lets what has expired take less.
    fn expire(&mut self, now: &str) {
        while let Some((when, key)) = self.expiring.first().cloned()
            && *when < *now
        {
            let charge = self
                .charges
                .get(&key)
                .and_then(|charge| charge.expires.clone());
            let rest = charge.map(|(_, amounts)| Charge {
                amounts,
                expires: None,
            });
            self.expiring.remove(&(when, key.clone()));
            self.put(key, rest);
        }
    }
}

impl Terms {
    /// What an object takes; nothing when the quota is not about it.
    fn charge(&self, measure: Measure<'_>, object: &Value) -> Option<Charge> {
        if !scope::matches(&self.quota, measure, object) {
            return None;
        }
        let at = |now| Measure { now, ..measure }.usage(object);
        let ends = object::meta_str(object, "deletionTimestamp");
        let (amounts, rest) = (at(BEFORE), at(NEVER));
        Some(Charge {
            expires: (amounts != rest).then(|| (ends.to_owned(), rest)),
            amounts,
        })
    }
}

impl Account {
    fn new(quota: &Value, since: u64) -> Self {
        Self {
            since,
            terms: Terms::read(quota),
            usage: Usage::Unknown,
        }
    }

    fn put(&mut self, revision: u64, key: &ObjectKey, charge: Option<Charge>) {
        match &mut self.usage {
            Usage::Unknown => {}
            Usage::Counting(changes) => changes.push((revision, key.clone(), charge)),
            Usage::Known(sum) => sum.put(key.clone(), charge),
        }
    }

    /// Takes up what was counted at these revisions of collections, and what happened since. Of several who count at
    /// once the first is enough.
    fn counted(&mut self, since: u64, mut sum: Sum, revisions: &HashMap<String, u64>) {
        let Usage::Counting(changes) = &mut self.usage else {
            return;
        };
        if self.since != since {
            return;
        }
        for (revision, key, charge) in changes.drain(..) {
            if revisions
                .get(&key.0)
                .is_none_or(|counted| revision > *counted)
            {
                sum.put(key, charge);
            }
        }
        self.usage = Usage::Known(sum);
    }

    fn check(&mut self, write: &QuotaCheck) -> Result<(), QuotaError> {
        let Usage::Known(sum) = &mut self.usage else {
            return Err(QuotaError::Uncounted);
        };
        sum.expire(&write.now);
        let none = Amounts::new();
        let before = sum
            .charges
            .get(&write.object_key)
            .map_or(&none, |c| &c.amounts);
        check(
            &self.terms,
            write.measure(),
            &write.object,
            before,
            &sum.used,
        )
        .map_err(|why| QuotaError::Exceeded(why.to_string()))
    }
}

impl Ledger {
    /// The quotas among these objects.
    pub(crate) fn read<'a>(quotas: impl Iterator<Item = &'a Arc<Record>>) -> Self {
        let ledger = Self::default();
        for record in quotas {
            ledger.put_quota(record);
        }
        ledger
    }

    /// Takes over the quotas of another, and nothing else.
    pub(crate) fn replace(&self, with: &Self) {
        *self.0.lock() = std::mem::take(&mut *with.0.lock());
    }

    /// Follows a change of any object.
    pub(crate) fn apply(&self, collection: &str, event: &Event) {
        let record = event.record();
        let Some(namespace) = record.namespace() else {
            return;
        };
        if collection == QUOTAS {
            match event.change() {
                Change::Deleted { .. } => self.remove_quota(record),
                Change::Created | Change::Updated { .. } => self.put_quota(record),
            }
        }
        let mut ledger = self.0.lock();
        if let Some(accounts) = ledger.get_mut(namespace) {
            let gone = matches!(event.change(), Change::Deleted { .. });
            put_object(accounts, collection, record, gone);
        }
    }

    fn put_quota(&self, record: &Record) {
        let (Some(namespace), Ok(quota)) = (
            record.namespace(),
            serde_json::from_slice::<Value>(record.body()),
        ) else {
            return;
        };
        let mut ledger = self.0.lock();
        let accounts = ledger.entry(namespace.to_owned()).or_default();
        // Its controller keeps writing the status, which changes nothing here.
        let known = accounts.get(record.name());
        if known.is_none_or(|known| known.terms.quota["spec"] != quota["spec"]) {
            accounts.insert(
                record.name().to_owned(),
                Account::new(&quota, record.revision()),
            );
        }
    }

    fn remove_quota(&self, record: &Record) {
        let namespace = record.namespace().unwrap_or("");
        let mut ledger = self.0.lock();
        if let Some(accounts) = ledger.get_mut(namespace) {
            accounts.remove(record.name());
            if accounts.is_empty() {
                ledger.remove(namespace);
            }
        }
    }

    /// Whether a namespace has quotas.
    pub(in crate::admission) fn concerns(&self, namespace: &str) -> bool {
        self.0.lock().contains_key(namespace)
    }

    /// Checks a write against all quotas of its namespace.
    pub(crate) fn check(&self, write: &QuotaCheck) -> Result<(), QuotaError> {
        let mut ledger = self.0.lock();
        let accounts = ledger.get_mut(&write.namespace);
        for account in accounts.into_iter().flat_map(BTreeMap::values_mut) {
            account.check(write)?;
        }
        Ok(())
    }

    /// Counts the objects of a namespace for those of its quotas for which that was not done yet.
    pub(crate) fn count(&self, namespace: &str, resources: &Resources) {
        for (name, since, terms) in self.begin_counting(namespace) {
            let mut sum = Sum::default();
            let mut revisions = HashMap::new();
            for served in resources.all().filter(|served| served.is_namespaced()) {
                let collection = served.collection.name();
                // Versions share a collection.
                if !terms.concern(measure(collection)) || revisions.contains_key(collection) {
                    continue;
                }
                let Ok(snapshot) = served.collection.snapshot(At::Latest) else {
                    continue;
                };
                for record in snapshot.range(&format!("{namespace}/"), None) {
                    let key = (collection.to_owned(), record.key().to_owned());
                    sum.put(key, charge(&terms, collection, record, &mut None));
                }
                revisions.insert(collection.to_owned(), snapshot.revision());
            }
            let mut ledger = self.0.lock();
            let accounts = ledger.get_mut(namespace);
            if let Some(account) = accounts.and_then(|accounts| accounts.get_mut(&name)) {
                account.counted(since, sum, &revisions);
            }
        }
    }

    /// The quotas of a namespace that have to be counted. From now on their changes are noted, so that what is read can
    /// be brought up to date.
    fn begin_counting(&self, namespace: &str) -> Vec<(String, u64, Terms)> {
        let mut ledger = self.0.lock();
        let accounts = ledger.get_mut(namespace).into_iter().flatten();
        let unknown = accounts.filter(|(_, account)| !matches!(account.usage, Usage::Known(_)));
        unknown
            .map(|(name, account)| {
                if matches!(account.usage, Usage::Unknown) {
                    account.usage = Usage::Counting(Vec::new());
                }
                (name.clone(), account.since, account.terms.clone())
            })
            .collect()
    }

    /// What is used of each quota that was counted, for tests that compare.
    pub(crate) fn describe(&self, now: &str) -> BTreeMap<String, String> {
        let mut described = BTreeMap::new();
        for (namespace, accounts) in &mut *self.0.lock() {
            for (name, account) in accounts {
                if let Usage::Known(sum) = &mut account.usage {
                    sum.expire(now);
                    let used: Vec<String> = sum
                        .used
                        .iter()
                        // Counted down to nothing and never counted are the same.
                        .map(|(name, used)| (name, used.to_string()))
                        .filter(|(_, used)| used != "0")
                        .map(|(name, used)| format!("{name}={used}"))
                        .collect();
                    described.insert(format!("{namespace}/{name}"), used.join(","));
                }
            }
        }
        described
    }
}

fn put_object(accounts: &mut Accounts, collection: &str, record: &Record, gone: bool) {
    let mut parsed = None;
    let key = (collection.to_owned(), record.key().to_owned());
    for account in accounts.values_mut() {
        if matches!(account.usage, Usage::Unknown) || !account.terms.concern(measure(collection)) {
            continue;
        }
        let charge = if gone {
            None
        } else {
            charge(&account.terms, collection, record, &mut parsed)
        };
        account.put(record.revision(), &key, charge);
    }
}

/// What a stored object takes. It is parsed at most once, and only where more than its being there counts.
fn charge(
    terms: &Terms,
    collection: &str,
    record: &Record,
    parsed: &mut Option<Value>,
) -> Option<Charge> {
    let measure = measure(collection);
    let object = if measure.reads_objects() {
        parsed.get_or_insert_with(|| serde_json::from_slice(record.body()).unwrap_or_default())
    } else {
        &Value::Null
    };
    terms.charge(measure, object)
}

/// How objects of a collection are measured.
fn measure(collection: &str) -> Measure<'_> {
    let (group, plural) = collection.rsplit_once('/').unwrap_or(("", collection));
    Measure {
        group,
        plural,
        now: BEFORE,
    }
}
