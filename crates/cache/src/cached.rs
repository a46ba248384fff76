//! Typed views of cached objects: decoded when used, shared while in use; those of events for a little while after.

use std::any::TypeId;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::Key;
use crate::decode::decode;
use crate::object::Object;
use crate::report::{Report, Reporter};
use crate::shape::AnyValue;
use crate::value::{self, Known};

/// How many values that nobody uses may still take memory: a `Weak` keeps the allocation, not what is in it.
const UNUSED: usize = 256;
/// How many of the last values of events stay when nobody uses them: a change is delivered to one handler after the other, and
/// a reconcile reads what it was called for. What is read from the store does not stay: it is any of many objects, and
/// those who read would meet at one lock.
const LAST: usize = 64;
/// How much JSON these were decoded from, at most: what stays is little beside the objects of the store.
const LAST_BYTES: usize = 256 * 1024;

/// A type that cached objects can be decoded as. Every type of `kube` and `k8s-openapi` is one.
pub trait Kind: DeserializeOwned + Send + Sync + 'static {}

impl<K: DeserializeOwned + Send + Sync + 'static> Kind for K {}

/// An object from the store, of a type that it is decoded as when it is asked for.
///
/// Cheap to clone. Key, versions and labels come from [`Object`], without decoding.
pub struct Cached<K> {
    object: Arc<Object>,
    decoder: Arc<Decoder>,
    stay: Stay,
    kind: PhantomData<fn() -> K>,
}

/// What becomes of a value that nobody uses any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It is dropped at once.
    No,
    /// It stays until other values have come.
    ForAWhile,
}

/// Decodes the objects of one store and remembers which values are in use.
pub(crate) struct Decoder {
    /// Objects whose value was made lately. At most `UNUSED` of them, and those in use.
    recent: Mutex<VecDeque<Weak<Object>>>,
    last: Mutex<Last>,
    reporter: Reporter,
}

/// The last values that were made, with the length of their JSON.
#[derive(Default)]
struct Last {
    values: VecDeque<(AnyValue, usize)>,
    /// The sum of the lengths.
    bytes: usize,
}

impl Last {
    fn push(&mut self, value: AnyValue, bytes: usize) {
        self.bytes += bytes;
        self.values.push_back((value, bytes));
    }

    /// A value that has to go, as long as there are too many.
    fn surplus(&mut self) -> Option<AnyValue> {
        if self.values.len() <= LAST && self.bytes <= LAST_BYTES {
            return None;
        }
        let (value, bytes) = self.values.pop_front()?;
        self.bytes -= bytes;
        Some(value)
    }
}

impl<K> Cached<K> {
    pub(crate) fn new(object: Arc<Object>, decoder: Arc<Decoder>) -> Self {
        Self {
            object,
            decoder,
            stay: Stay::No,
            kind: PhantomData,
        }
    }

    /// An object that an event tells of.
    pub(crate) fn of_event(object: Arc<Object>, decoder: Arc<Decoder>) -> Self {
        Self {
            stay: Stay::ForAWhile,
            ..Self::new(object, decoder)
        }
    }

    /// The object without a type.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl<K: Kind> Cached<K> {
    /// The value, decoded unless somebody is using it already.
    ///
    /// Nothing when the object does not decode as `K`; that is reported once for each type. Whoever must not take such an
    /// object for one that does not exist asks for [`decoded`](Cached::decoded).
    pub fn value(&self) -> Option<Arc<K>> {
        self.decoded().ok()
    }

    /// The value, decoded unless somebody is using it already.
    ///
    /// # Errors
    /// When the object does not decode as `K`. It exists all the same, and may decode as another type.
    pub fn decoded(&self) -> Result<Arc<K>, Undecodable> {
        self.decoder.value(&self.object, self.stay)
    }
}

impl<K> Deref for Cached<K> {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self {
            stay: self.stay,
            ..Self::new(self.object.clone(), self.decoder.clone())
        }
    }
}

impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.object, f)
    }
}

impl Decoder {
    pub(crate) fn new(reporter: Reporter) -> Arc<Self> {
        Arc::new(Self {
            recent: Mutex::new(VecDeque::new()),
            last: Mutex::default(),
            reporter,
        })
    }

    pub(crate) fn value<K: Kind>(
        &self,
        object: &Arc<Object>,
        stay: Stay,
    ) -> Result<Arc<K>, Undecodable> {
        // What is taken out under the lock may be the last of its kind: it is dropped after it.
        let known = object.value().lock().known(TypeId::of::<K>());
        match known {
            Known::Value(value) => {
                if let Ok(value) = value.downcast::<K>() {
                    return Ok(value);
                }
            }
            Known::Broken => return Err(Undecodable::of::<K>(object)),
            Known::Nothing => {}
        }
        // Decoded outside of the lock: two readers may both do it, and the later value is the one that is shared.
        match decode::<K>(object.json()) {
            Ok(value) => Ok(self.share(object, Arc::new(value), stay)),
            Err(error) => {
                self.refuse::<K>(object, &error);
                Err(Undecodable::new(object, error.to_string()))
            }
        }
    }

    fn share<K: Kind>(&self, object: &Arc<Object>, value: Arc<K>, stay: Stay) -> Arc<K> {
        let weak = value::weak(&value);
        let noted = object.value().lock().share(TypeId::of::<K>(), weak);
        if noted.is_first {
            self.remember(object);
        }
        drop(noted.other);
        if stay == Stay::ForAWhile {
            self.keep_for_a_while(value.clone(), object.json().len());
        }
        value
    }

    fn keep_for_a_while(&self, value: AnyValue, bytes: usize) {
        let mut last = self.last.lock();
        last.push(value, bytes);
        while let Some(value) = last.surplus() {
            // What a value does when it goes is not ours: not under the lock.
            parking_lot::MutexGuard::unlocked(&mut last, || drop(value));
        }
    }

    /// Notes that this object has a value, and frees what earlier ones left behind. Looking at two for each new one
    /// keeps the number of unused ones bounded.
    fn remember(&self, object: &Arc<Object>) {
        let mut recent = self.recent.lock();
        recent.push_back(Arc::downgrade(object));
        for _ in 0..2 {
            if recent.len() <= UNUSED {
                return;
            }
            let Some(oldest) = recent.pop_front() else {
                return;
            };
            if oldest.upgrade().is_some_and(|object| !free(&object)) {
                recent.push_back(oldest);
            }
        }
    }

    fn refuse<K: Kind>(&self, object: &Arc<Object>, error: &serde_json::Error) {
        let (is_news, other) = object.value().lock().refuse(TypeId::of::<K>());
        drop(other);
        if is_news {
            self.reporter.report(&Report::Undecodable {
                key: Some(object.key().clone()),
                message: error.to_string(),
            });
        }
    }
}

/// Frees the values that are not in use, and says whether none is left.
fn free(object: &Object) -> bool {
    object.value().lock().free()
}

/// An object exists and does not decode as the type that it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} does not decode: {message}")]
#[non_exhaustive]
pub struct Undecodable {
    /// The key of the object.
    pub key: Key,
    /// The decoder's error message.
    pub message: String,
}

impl Undecodable {
    fn new(object: &Object, message: String) -> Self {
        let key = object.key().clone();
        Self { key, message }
    }

    /// The error of an object that is known not to decode. It is decoded once more for the message, which nobody keeps.
    fn of<K: Kind>(object: &Object) -> Self {
        let message = match decode::<K>(object.json()) {
            Ok(_) => "its last state could not be read".to_owned(),
            Err(error) => error.to_string(),
        };
        Self::new(object, message)
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder")
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::Shape;

    #[derive(Deserialize, Debug)]
    struct Config {
        data: Option<std::collections::BTreeMap<String, String>>,
    }

    fn object(name: &str, data: &str) -> Arc<Object> {
        let json = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{data}}}"#);
        Object::parse(json.as_bytes(), &Shape::default()).expect("it is an object")
    }

    #[test]
    fn value_is_shared_while_it_is_in_use_and_for_a_while_after() {
        let decoder = Decoder::new(Reporter::default());
        let object_a = object("a", r#"{"k":"v"}"#);
        let cached: Cached<Config> = Cached::of_event(object_a, decoder.clone());
        let first = cached.value().expect("it decodes");
        let second = cached.clone().value().expect("it decodes");
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(first.data.as_ref().map(|data| data.len()), Some(1));
        let weak = Arc::downgrade(&first);
        drop((first, second));
        let again = weak.upgrade().expect("a handler after this one needs it");
        assert!(Arc::ptr_eq(&again, &cached.value().expect("it decodes")));
        drop(again);
        for n in 0..LAST {
            let decoded = decoder.value::<Config>(&object(&n.to_string(), "{}"), Stay::ForAWhile);
            assert!(decoded.is_ok());
        }
        assert_eq!(weak.strong_count(), 0);
        assert!(cached.value().is_some());
    }

    #[test]
    fn value_read_from_the_store_goes_when_nobody_uses_it() {
        let decoder = Decoder::new(Reporter::default());
        let cached: Cached<Config> = Cached::new(object("a", "{}"), decoder);
        let weak = cached.value().map(|value| Arc::downgrade(&value));
        assert_eq!(weak.map(|weak| weak.strong_count()), Some(0));
    }

    #[test]
    fn large_values_do_not_stay() {
        let decoder = Decoder::new(Reporter::default());
        let text = "x".repeat(LAST_BYTES / 4);
        let large = |n: usize| object(&n.to_string(), &format!(r#"{{"k":"{text}"}}"#));
        let values: Vec<_> = (0..8)
            .filter_map(|n| {
                let decoded = decoder.value::<Config>(&large(n), Stay::ForAWhile);
                decoded.ok()
            })
            .map(|value| Arc::downgrade(&value))
            .collect();
        let alive = values.iter().filter(|value| value.strong_count() > 0);
        assert_eq!(alive.count(), 3);
        let huge = object("huge", &format!(r#"{{"k":"{}"}}"#, text.repeat(5)));
        let huge = decoder
            .value::<Config>(&huge, Stay::ForAWhile)
            .expect("it decodes");
        assert_eq!(Arc::strong_count(&huge), 1);
    }

    #[test]
    fn object_that_does_not_decode_is_reported_once_and_absent() {
        let (reporter, reports) = Reporter::recording();
        let cached: Cached<Config> = Cached::new(object("a", "3"), Decoder::new(reporter));
        assert!(cached.value().is_none());
        assert!(cached.value().is_none());
        assert_eq!(reports.lock().len(), 1);
    }

    /// A cached object as two types: the one that it fits first, or last.
    fn check_two_types(dynamic_first: bool) {
        let (reporter, reports) = Reporter::recording();
        let decoder = Decoder::new(reporter);
        let object = object("a", "3");
        let typed: Cached<Config> = Cached::new(object.clone(), decoder.clone());
        let dynamic: Cached<serde_json::Value> = Cached::new(object, decoder);
        let held = dynamic_first.then(|| dynamic.value().expect("it is JSON"));
        for _ in 0..3 {
            let error = typed.decoded().expect_err("it does not fit");
            assert!(
                error.message.contains("invalid type: integer"),
                "{}",
                error.message
            );
            let value = dynamic.value().expect("the other type is not affected");
            assert_eq!(value["data"], 3);
            if let Some(held) = &held {
                assert!(Arc::ptr_eq(held, &value), "it stays shared");
            }
        }
        assert_eq!(reports.lock().len(), 1, "{:?}", reports.lock());
    }

    #[test]
    fn failure_of_one_type_does_not_hide_the_object_from_another_and_is_reported_once() {
        check_two_types(true);
        check_two_types(false);
    }

    #[test]
    fn values_of_two_types_are_shared_side_by_side() {
        let decoder = Decoder::new(Reporter::default());
        let object = object("a", "{}");
        let typed: Cached<Config> = Cached::new(object.clone(), decoder.clone());
        let dynamic: Cached<serde_json::Value> = Cached::new(object, decoder);
        let (one, other) = (typed.value(), dynamic.value());
        let same = |a: &Option<Arc<Config>>, b: &Option<Arc<Config>>| matches!((a, b), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        assert!(same(&one, &typed.value()));
        assert!(matches!((other, dynamic.value()), (Some(a), Some(b)) if Arc::ptr_eq(&a, &b)));
        drop(one);
        assert!(typed.value().is_some());
    }

    #[test]
    fn values_that_nobody_uses_are_freed() {
        let decoder = Decoder::new(Reporter::default());
        let objects: Vec<_> = (0..2_000).map(|n| object(&n.to_string(), "{}")).collect();
        for object in &objects {
            assert!(decoder.value::<Config>(object, Stay::No).is_ok());
        }
        let with_value =
            |object: &&Arc<Object>| !matches!(&*object.value().lock(), value::Value::None);
        assert!(objects.iter().filter(with_value).count() <= UNUSED);
    }
}
