//! FlowSchemas and PriorityLevelConfigurations as requests find them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::machine::{FlowId, Limits, Queuing};
use super::schema::{Distinguisher, FlowSchema};
use crate::access::Attributes;
use crate::auth::User;
use crate::kinds::value::text;
use crate::object;

/// What Kubernetes assumes of a level that does not say.
const DEFAULT_SHARES: u64 = 30;
const DEFAULT_QUEUES: usize = 64;
const DEFAULT_HAND_SIZE: usize = 8;
const DEFAULT_QUEUE_LENGTH: usize = 50;
/// Requests that wait in one level, whatever its configuration says.
const MOST_WAITING: usize = 50_000;

/// Which requests belong to which flow of which priority level.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// In the order in which they are tried.
    schemas: Vec<FlowSchema>,
    levels: HashMap<Arc<str>, PriorityLevel>,
}

/// A PriorityLevelConfiguration.
#[derive(Debug)]
struct PriorityLevel {
    uid: Arc<str>,
    /// None when requests of the level never wait.
    limits: Option<Limits>,
}

/// What a request belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Classified {
    pub(crate) schema_uid: Arc<str>,
    pub(crate) level_uid: Arc<str>,
    /// None when the request is exempt.
    pub(crate) flow: Option<FlowId>,
}

impl Config {
    /// Reads what is stored; the levels share so many seats.
    pub(super) fn read(schemas: &[Value], levels: &[Value], seats: usize) -> Self {
        let shares: u64 = levels.iter().filter_map(shares).sum();
        let read = |object: &Value| {
            let level = PriorityLevel {
                uid: text(&object["metadata"]["uid"]).into(),
                limits: limits(object, seats, shares),
            };
            (object::name(object).into(), level)
        };
        let mut schemas: Vec<FlowSchema> = schemas.iter().map(FlowSchema::read).collect();
        schemas.sort_by(|a, b| a.order().cmp(&b.order()));
        let levels: HashMap<Arc<str>, PriorityLevel> = levels.iter().map(read).collect();
        // A schema whose level is missing (`Dangling`) is passed over.
        schemas.retain(|schema| levels.contains_key(&schema.level));
        Self { schemas, levels }
    }

    /// The limits of all levels that have any.
    pub(super) fn limits(&self) -> impl Iterator<Item = (Arc<str>, Limits)> {
        let limited = self.levels.iter();
        limited.filter_map(|(name, level)| Some((name.clone(), level.limits?)))
    }

    /// What a request belongs to; none when no schema matches, which the mandatory ones prevent.
    pub(super) fn classify(&self, user: &User, asked: &Attributes<'_>) -> Option<Classified> {
        let schema = self.schemas.iter().find(|s| s.matches(user, asked))?;
        let level = self.levels.get(&schema.level)?;
        let distinguisher = match schema.distinguisher {
            Distinguisher::Nothing => "",
            Distinguisher::User => user.name.as_str(),
            Distinguisher::Namespace => asked.namespace(),
        };
        let flow = level.limits.map(|_| FlowId {
            level: schema.level.clone(),
            flow: format!("{}/{distinguisher}", schema.name).into(),
        });
        Some(Classified {
            schema_uid: schema.uid.clone(),
            level_uid: level.uid.clone(),
            flow,
        })
    }
}

fn is_exempt(level: &Value) -> bool {
    text(&level["spec"]["type"]) == "Exempt"
}

/// The shares of a level, in either of its two forms.
fn shares(level: &Value) -> Option<u64> {
    let spec = &level["spec"];
    if is_exempt(level) {
        return spec["exempt"]["nominalConcurrencyShares"].as_u64();
    }
    let shares = spec["limited"]["nominalConcurrencyShares"].as_u64();
    Some(shares.unwrap_or(DEFAULT_SHARES))
}

/// Mirrors `updateLocked` of `apf_controller.go`: a level has its share of the seats, rounded up.
fn limits(level: &Value, seats: usize, all_shares: u64) -> Option<Limits> {
    if is_exempt(level) {
        return None;
    }
    let limited = &level["spec"]["limited"];
    let percent = |field: &str| limited[field].as_u64().map(|p| p as usize);
    let share = shares(level).unwrap_or(0) as u128 * seats as u128;
    let nominal = share.div_ceil(all_shares.max(1) as u128) as usize;
    let of_nominal = |percent: usize| nominal.saturating_mul(percent) / 100;
    Some(Limits {
        nominal,
        lendable: of_nominal(percent("lendablePercent").unwrap_or(0).min(100)),
        borrowing: percent("borrowingLimitPercent").map_or(seats, of_nominal),
        queuing: queuing(&limited["limitResponse"]),
    })
}

/// How many requests may wait. A flow of Kubernetes has a hand of queues and joins the shortest.
fn queuing(response: &Value) -> Option<Queuing> {
    if text(&response["type"]) != "Queue" {
        return None;
    }
    let number = |field: &str, default: usize| {
        let number = response["queuing"][field].as_u64();
        number.map_or(default, |n| n.min(MOST_WAITING as u64) as usize)
    };
    let length = number("queueLengthLimit", DEFAULT_QUEUE_LENGTH);
    let queues = number("queues", DEFAULT_QUEUES);
    let hand = number("handSize", DEFAULT_HAND_SIZE);
    let most = |queues: usize| queues.saturating_mul(length).min(MOST_WAITING);
    Some(Queuing {
        per_flow: most(hand.min(queues)),
        total: most(queues),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn level(name: &str, limited: Value) -> Value {
        json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}})
    }

    #[test]
    fn levels_share_the_seats() {
        let queue = json!({"type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 50}});
        let levels = [
            level(
                "a",
                json!({"nominalConcurrencyShares": 30, "lendablePercent": 50, "limitResponse": queue}),
            ),
            level(
                "b",
                json!({"nominalConcurrencyShares": 10, "borrowingLimitPercent": 20, "limitResponse": {"type": "Reject"}}),
            ),
            json!({"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0}}}),
        ];
        let config = Config::read(&[], &levels, 101);
        let mut limits: Vec<_> = config.limits().collect();
        limits.sort_by(|a, b| a.0.cmp(&b.0));
        let queuing = Queuing {
            per_flow: 200,
            total: 800,
        };
        let expected = [
            Limits {
                nominal: 76,
                lendable: 38,
                borrowing: 101,
                queuing: Some(queuing),
            },
            Limits {
                nominal: 26,
                lendable: 0,
                borrowing: 5,
                queuing: None,
            },
        ];
        assert_eq!(limits.iter().map(|(_, l)| *l).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn absurd_numbers_do_not_overflow() {
        let queue = json!({"type": "Queue", "queuing": {"queues": u64::MAX, "handSize": u64::MAX, "queueLengthLimit": u64::MAX}});
        let limited = json!({
            "nominalConcurrencyShares": i32::MAX, "lendablePercent": u64::MAX, "borrowingLimitPercent": u64::MAX,
            "limitResponse": queue,
        });
        let config = Config::read(&[], &[level("a", limited)], 600);
        let (_, limits) = config.limits().next().expect("a level");
        assert_eq!((limits.nominal, limits.lendable), (600, 600));
        assert_eq!(limits.queuing.expect("queues").total, MOST_WAITING);
    }

    #[test]
    fn the_first_schema_that_matches_and_has_a_level_decides() {
        let everybody = json!([{
            "subjects": [{"kind": "User", "user": {"name": "*"}}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }]);
        let schema = |name: &str, precedence: i64, level: &str, method: &str| {
            json!({"metadata": {"name": name, "uid": name}, "spec": {
                "matchingPrecedence": precedence, "rules": everybody,
                "priorityLevelConfiguration": {"name": level}, "distinguisherMethod": {"type": method},
            }})
        };
        let schemas = [
            schema("late", 30, "l", ""),
            schema("by-user", 20, "l", "ByUser"),
            schema("same-precedence", 20, "l", ""),
            schema("dangling", 10, "missing", ""),
        ];
        let config = Config::read(&schemas, &[level("l", json!({}))], 10);
        let asked = Attributes {
            verb: "get".into(),
            subject: crate::access::Subject::Path("/version".into()),
        };
        let found = config.classify(&User::new("bob", [""; 0]), &asked);
        let found = found.expect("a schema matches");
        assert_eq!(&*found.schema_uid, "by-user");
        assert_eq!(&*found.flow.expect("limited").flow, "by-user/bob");
    }
}
