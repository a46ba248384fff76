//! The decoded forms of one object: one for each type that it was read as, and the types that it does not fit.
//!
//! An object that one reader cannot decode is there for every other reader: a failure belongs to the object and the type.

use std::any::{Any, TypeId};
use std::sync::{Arc, Weak};

use crate::shape::AnyValue;

type WeakValue = Weak<dyn Any + Send + Sync>;

/// The decoded forms of an object, made when somebody first asks for them.
pub(crate) enum Value {
    None,
    /// In use somewhere, or was until lately. By far the most objects are read as one type.
    Shared(WeakValue),
    Kept(AnyValue),
    /// Read as several types, or as one that it does not fit.
    Several(Box<Several>),
    /// There is nothing to decode: only the key and the version could be read.
    Identity,
}

#[derive(Default)]
pub(crate) struct Several {
    shared: Vec<(TypeId, WeakValue)>,
    /// Types that it does not decode as; each has been reported.
    broken: Vec<TypeId>,
}

/// What is known of an object as a type.
pub(crate) enum Known {
    /// A value, of this type unless it is the only one.
    Value(AnyValue),
    /// It does not decode, which has been reported.
    Broken,
    Nothing,
}

/// What came of sharing a value.
pub(crate) struct Noted {
    /// Whether the object had no value in use before.
    pub(crate) is_first: bool,
    /// A value of somebody else's that must not be dropped under the lock.
    pub(crate) other: Option<AnyValue>,
}

impl Value {
    pub(crate) fn known(&self, kind: TypeId) -> Known {
        let upgraded = |value: &WeakValue| value.upgrade().map_or(Known::Nothing, Known::Value);
        match self {
            Self::None => Known::Nothing,
            Self::Identity => Known::Broken,
            Self::Kept(value) => Known::Value(value.clone()),
            Self::Shared(value) => upgraded(value),
            Self::Several(several) if several.broken.contains(&kind) => Known::Broken,
            Self::Several(several) => {
                let mut shared = several.shared.iter();
                let found = shared.find(|(other, _)| *other == kind);
                found.map_or(Known::Nothing, |(_, value)| upgraded(value))
            }
        }
    }

    /// Notes a value that is in use from now on.
    pub(crate) fn share(&mut self, kind: TypeId, value: WeakValue) -> Noted {
        let mut noted = Noted {
            is_first: false,
            other: None,
        };
        match self {
            Self::Kept(_) | Self::Identity => {}
            Self::None => {
                noted.is_first = true;
                *self = Self::Shared(value);
            }
            Self::Shared(old) => {
                noted.other = old.upgrade();
                let old_kind = noted.other.as_ref().map(|old| (**old).type_id());
                match old_kind.filter(|old_kind| *old_kind != kind) {
                    None => *self = Self::Shared(value),
                    Some(old_kind) => {
                        let shared = vec![(old_kind, old.clone()), (kind, value)];
                        let broken = Vec::new();
                        *self = Self::Several(Box::new(Several { shared, broken }));
                    }
                }
            }
            Self::Several(several) => {
                noted.is_first = several.shared.is_empty();
                several
                    .shared
                    .retain(|(other, old)| *other != kind && old.strong_count() > 0);
                several.shared.push((kind, value));
            }
        }
        noted
    }

    /// Notes that the object does not decode as a type, and says whether that is news. A value that comes with it must not
    /// be dropped under the lock.
    pub(crate) fn refuse(&mut self, kind: TypeId) -> (bool, Option<AnyValue>) {
        let mut other = None;
        if let Self::None | Self::Shared(_) = self {
            let mut several = Box::<Several>::default();
            if let Self::Shared(old) = self {
                other = old.upgrade();
                let old = other
                    .as_ref()
                    .map(|value| ((**value).type_id(), old.clone()));
                several.shared.extend(old);
            }
            *self = Self::Several(several);
        }
        let Self::Several(several) = self else {
            return (false, other);
        };
        let is_news = !several.broken.contains(&kind);
        if is_news {
            several.broken.push(kind);
        }
        (is_news, other)
    }

    /// Lets go of values that nobody uses, and says whether none is in use.
    pub(crate) fn free(&mut self) -> bool {
        match self {
            Self::Shared(value) if value.strong_count() > 0 => false,
            Self::Shared(_) => {
                *self = Self::None;
                true
            }
            Self::Several(several) => {
                several.shared.retain(|(_, old)| old.strong_count() > 0);
                several.shared.is_empty()
            }
            Self::None | Self::Kept(_) | Self::Identity => true,
        }
    }
}

/// A value for a slot, without keeping it alive.
pub(crate) fn weak<K: Send + Sync + 'static>(value: &Arc<K>) -> WeakValue {
    let value: AnyValue = value.clone();
    Arc::downgrade(&value)
}
