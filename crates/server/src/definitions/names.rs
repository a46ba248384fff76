//! The names of definitions: which are free, and what the status says about it.

use kubewright_schema::crd::{Definition, Names};
use serde_json::{Value, json};

use crate::registry::{NameClass, Resources};

/// The status that a definition should have: which of its names are free, and whether it is served.
pub(crate) fn next_status(resources: &Resources, now: &str, name: &str, value: &Value) -> Value {
    let wanted = Definition::parse(value);
    let mut status = value["status"].clone();
    if !status.is_object() {
        status = json!({});
    }
    let mut set = |kind, value, reason, message| {
        let update = ConditionUpdate {
            kind,
            status: value,
            reason,
            message,
        };
        set_condition(&mut status, now, &update);
    };
    let names = resources.names();
    let taken = |class, wanted_name: &str| names.is_taken(&wanted.group, class, wanted_name, name);
    match conflict(&wanted.names, taken) {
        None => {
            set("NamesAccepted", "True", "NoConflicts", "no conflicts found");
            let message = "the initial names have been accepted";
            set("Established", "True", "InitialNamesAccepted", message);
            status["acceptedNames"] = value["spec"]["names"].clone();
        }
        Some((reason, message)) => {
            set("NamesAccepted", "False", reason, &message);
            // Once served, a definition stays served under the names it was accepted with.
            if !is_established(&value["status"]) {
                let why = "not all names are accepted";
                set("Established", "False", "NotAccepted", why);
            }
        }
    }
    if status["acceptedNames"].is_null() {
        status["acceptedNames"] = json!({ "plural": "", "kind": "" });
    }
    status
}

/// The reason and message of the last name that is taken, as the API tells it.
fn conflict(
    names: &Names,
    taken: impl Fn(NameClass, &str) -> bool,
) -> Option<(&'static str, String)> {
    let resources = [
        ("PluralConflict", &names.plural),
        ("SingularConflict", &names.singular),
    ]
    .into_iter()
    .chain(
        names
            .short_names
            .iter()
            .map(|name| ("ShortNamesConflict", name)),
    )
    .filter(|(_, name)| taken(NameClass::Resource, name));
    let kinds = [
        ("KindConflict", &names.kind),
        ("ListKindConflict", &names.list_kind),
    ]
    .into_iter()
    .filter(|(_, name)| taken(NameClass::Kind, name));
    let (reason, name) = resources.chain(kinds).last()?;
    Some((reason, format!("{name:?} is already in use")))
}

/// Whether a definition has the names that it wants, and its status says so.
pub(crate) fn names_are_accepted(definition: &Value) -> bool {
    let (wanted, status) = (&definition["spec"]["names"], &definition["status"]);
    is_established(status) && status["acceptedNames"] == *wanted
}

/// Whether a definition is served.
pub(crate) fn is_established(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// What a condition of a definition is to say.
pub(crate) struct ConditionUpdate<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Sets a condition; its time changes only when its status does.
pub(crate) fn set_condition(status: &mut Value, now: &str, update: &ConditionUpdate<'_>) {
    let ConditionUpdate {
        kind,
        status: value,
        reason,
        message,
    } = *update;
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let mut condition = json!({
        "type": kind, "status": value, "lastTransitionTime": now, "reason": reason, "message": message,
    });
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(existing) => {
            if existing["status"] == value {
                condition["lastTransitionTime"] = existing["lastTransitionTime"].take();
            }
            *existing = condition;
        }
        None => conditions.push(condition),
    }
}
