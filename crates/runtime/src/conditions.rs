//! Keeps the conditions of a status: one of each type, and a transition time that moves only when the status does.
//!
//! That last rule keeps an operator from triggering itself with every write of its own status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The status of a condition, as in `metav1.Condition`. There are these three, so that it can be matched without a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The condition holds at present.
    True,
    /// It does not hold.
    False,
    /// Nobody knows whether it holds.
    Unknown,
}

impl Status {
    /// As it stands in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Builds conditions: `Condition` is the type of Kubernetes, and has these methods where this trait is in scope, as it is with
/// the prelude.
///
/// ```
/// use kubewright_runtime::conditions::{self, Condition, ConditionExt, Status};
///
/// let mut conditions = Vec::new();
/// let now = jiff::Timestamp::now();
/// let ready = Condition::new("Ready", Status::True, "Synced").message("all there").generation(3);
/// assert!(conditions::set(&mut conditions, now, ready.clone()));
/// assert!(!conditions::set(&mut conditions, now, ready));
/// assert!(conditions::is_true(&conditions, "Ready"));
/// ```
pub trait ConditionExt: sealed::Sealed {
    /// A condition of this type, with an empty message. The reason is a word in CamelCase. The time of the transition is not
    /// known here, so it is that of the epoch until [`set`] puts the condition into a list.
    #[must_use]
    fn new(kind: &str, status: Status, reason: &str) -> Self;

    /// Sets the message that people read.
    #[must_use]
    fn message(self, message: impl Into<String>) -> Self;

    /// Sets `observedGeneration`: the generation of the object that the condition describes, as a number or as the
    /// metadata has it.
    #[must_use]
    fn generation(self, generation: impl Into<Option<i64>>) -> Self;
}

impl ConditionExt for Condition {
    fn new(kind: &str, status: Status, reason: &str) -> Self {
        Self {
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            message: String::new(),
            observed_generation: None,
            reason: reason.into(),
            status: status.as_str().into(),
            type_: kind.into(),
        }
    }

    fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    fn generation(mut self, generation: impl Into<Option<i64>>) -> Self {
        self.observed_generation = generation.into();
        self
    }
}

mod sealed {
    pub trait Sealed: Sized {}
    impl Sealed for super::Condition {}
}

/// Sets a condition and says whether anything changed. The transition time becomes `now` if the status is new or
/// different, whatever time the condition brings; an observed generation that is not given leaves the present one alone.
///
/// ```
/// # use kubewright_runtime::conditions::{self, Condition, ConditionExt, Status};
/// # let now = "2030-01-01T00:00:00Z".parse().unwrap();
/// let mut list = Vec::new();
/// conditions::set(&mut list, now, Condition::new("Ready", Status::False, "Starting"));
/// let again = Condition::new("Ready", Status::False, "Starting");
/// assert!(!conditions::set(&mut list, now, again), "nothing changed");
/// ```
pub fn set(conditions: &mut Vec<Condition>, now: Timestamp, condition: Condition) -> bool {
    let mut same_type = conditions.iter_mut();
    let Some(present) = same_type.find(|it| it.type_ == condition.type_) else {
        conditions.push(Condition {
            last_transition_time: whole_seconds(now),
            ..condition
        });
        return true;
    };
    let last_transition_time = if present.status == condition.status {
        present.last_transition_time.clone()
    } else {
        whole_seconds(now)
    };
    let next = Condition {
        last_transition_time,
        observed_generation: condition
            .observed_generation
            .or(present.observed_generation),
        ..condition
    };
    let is_changed = *present != next;
    *present = next;
    is_changed
}

/// Removes the condition of this type and says whether it was there.
///
/// ```
/// # use kubewright_runtime::conditions::{self, Condition, ConditionExt, Status};
/// # let now = "2030-01-01T00:00:00Z".parse().unwrap();
/// let mut list = Vec::new();
/// conditions::set(&mut list, now, Condition::new("Ready", Status::False, "Starting"));
/// assert!(conditions::remove(&mut list, "Ready"));
/// assert!(list.is_empty());
/// ```
pub fn remove(conditions: &mut Vec<Condition>, kind: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != kind);
    conditions.len() != before
}

/// The condition of this type.
///
/// ```
/// # use kubewright_runtime::conditions::{self, Condition, ConditionExt, Status};
/// # let now = "2030-01-01T00:00:00Z".parse().unwrap();
/// let mut list = Vec::new();
/// conditions::set(&mut list, now, Condition::new("Ready", Status::False, "Starting"));
/// assert_eq!(conditions::find(&list, "Ready").unwrap().reason, "Starting");
/// assert!(conditions::find(&list, "Available").is_none());
/// ```
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether the condition of this type is there and true.
///
/// ```
/// # use kubewright_runtime::conditions::{self, Condition, ConditionExt, Status};
/// # let now = "2030-01-01T00:00:00Z".parse().unwrap();
/// let mut list = Vec::new();
/// conditions::set(&mut list, now, Condition::new("Ready", Status::False, "Starting"));
/// assert!(!conditions::is_true(&list, "Ready"));
/// ```
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    has_status(conditions, kind, Status::True)
}

/// Whether the condition of this type is there and false.
///
/// ```
/// # use kubewright_runtime::conditions::{self, Condition, ConditionExt, Status};
/// # let now = "2030-01-01T00:00:00Z".parse().unwrap();
/// let mut list = Vec::new();
/// conditions::set(&mut list, now, Condition::new("Ready", Status::False, "Starting"));
/// assert!(conditions::is_false(&list, "Ready"));
/// assert!(!conditions::is_false(&list, "Available"), "unknown is not false");
/// ```
pub fn is_false(conditions: &[Condition], kind: &str) -> bool {
    has_status(conditions, kind, Status::False)
}

fn has_status(conditions: &[Condition], kind: &str, status: Status) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == status.as_str())
}

/// As it will come back from the server; a finer time would look like a change.
fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millisecond(second * 1000 + 250).expect("in range")
    }

    fn ready(status: Status, reason: &str) -> Condition {
        Condition::new("Ready", status, reason)
    }

    #[test]
    fn transition_time_moves_with_the_status_alone() {
        let mut all = Vec::new();
        let steps = [
            (ready(Status::False, "Starting"), 1, true, 1),
            (ready(Status::False, "Waiting"), 2, true, 1),
            (ready(Status::False, "Waiting").message("for b"), 3, true, 1),
            (
                ready(Status::False, "Waiting").message("for b"),
                4,
                false,
                1,
            ),
            (ready(Status::True, "Synced"), 5, true, 5),
            (ready(Status::True, "Synced").generation(2), 6, true, 5),
            (ready(Status::True, "Synced"), 7, false, 5),
            (ready(Status::Unknown, "Lost"), 8, true, 8),
        ];
        for (condition, second, changed, transition) in steps {
            assert_eq!(set(&mut all, at(second), condition), changed, "at {second}");
            let time = all[0].last_transition_time.0;
            assert_eq!(time, Timestamp::from_second(transition).expect("in range"));
        }
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].observed_generation, Some(2));
    }

    #[test]
    fn condition_of_another_list_gets_a_transition_time_of_its_own() {
        let (mut child, mut parent) = (Vec::new(), Vec::new());
        set(&mut child, at(1), ready(Status::True, "A"));
        let found = find(&child, "Ready").cloned().expect("it was set");
        assert!(set(&mut parent, at(2), found.clone()));
        assert!(!set(&mut parent, at(3), found));
        let time = parent[0].last_transition_time.0;
        assert_eq!(time, Timestamp::from_second(2).expect("in range"));
    }

    #[test]
    fn conditions_are_found_and_removed_by_type() {
        let mut all = Vec::new();
        set(&mut all, at(1), ready(Status::True, "A"));
        set(
            &mut all,
            at(1),
            Condition::new("Stalled", Status::False, "B"),
        );
        assert!(is_true(&all, "Ready") && is_false(&all, "Stalled"));
        assert!(!is_true(&all, "Stalled") && !is_true(&all, "Other"));
        assert!(remove(&mut all, "Ready") && !remove(&mut all, "Ready"));
        assert_eq!(find(&all, "Stalled").map(|c| c.reason.as_str()), Some("B"));
    }

    #[test]
    fn condition_survives_the_way_through_json() {
        let mut all = Vec::new();
        set(&mut all, at(1), ready(Status::True, "A"));
        let text = serde_json::to_string(&all).expect("serializes");
        let back: Vec<Condition> = serde_json::from_str(&text).expect("parses");
        assert_eq!(back, all);
    }
}
