//! States made comparable: what differs between two runs for no reason of the operator's is replaced.
//!
//! A uid becomes the name of its object, a name that the server made becomes a number, times and addresses become words.
//! Everything else is compared, conditions, annotations and whether a generation was observed included.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::identity::is_time;
use crate::state::{ObjectId, State};

/// The objects of a state, comparable.
pub(crate) type Normal = BTreeMap<ObjectId, Value>;

/// Fields that the server keeps for itself.
const DROPPED: [&str; 6] = [
    "resourceVersion",
    "managedFields",
    "selfLink",
    "containerID",
    "imageID",
    "collisionCount",
];

/// The length of a uid.
const UID: usize = 36;

/// What is left out of a comparison besides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Masks {
    /// Resources, as `jobs.batch`.
    pub(crate) resources: Vec<String>,
    /// Fields by their paths, as `status.lastRun`, in the form in which a [`Difference`] has them.
    pub(crate) fields: Vec<String>,
    /// Resources, and fields of theirs alone.
    pub(crate) fields_of: Vec<(String, String)>,
}

/// Replaces what differs between runs.
pub(crate) fn normalise(state: &State, masks: &Masks) -> Normal {
    comparable(state, state.values(), masks)
}

/// Makes the objects of a state comparable.
fn comparable(state: &State, mut objects: Vec<(ObjectId, Value)>, masks: &Masks) -> Normal {
    let mut names = Names::new(state);
    for ((resource, _), object) in &mut objects {
        sort_by_type(object);
        let own = masks.fields_of.iter().filter(|(of, _)| of == resource);
        for field in masks.fields.iter().chain(own.map(|(_, field)| field)) {
            mask(object, field);
        }
    }
    // First without the names that the server made, to put their objects into an order that has nothing to do with them.
    let mut generated: BTreeMap<ObjectId, Vec<(String, String)>> = BTreeMap::new();
    for ((resource, key), object) in &objects {
        let Some(prefix) = generated_prefix(object) else {
            continue;
        };
        let mut content = object.clone();
        names.replace(&mut content);
        for own in ["name", "uid"] {
            content["metadata"][own] = Value::Null;
        }
        let group = (resource.clone(), sibling(key, &prefix));
        let group = generated.entry(group).or_default();
        group.push((content.to_string(), key.clone()));
    }
    let mut keys: BTreeMap<ObjectId, String> = BTreeMap::new();
    for ((resource, prefix), mut group) in generated {
        group.sort();
        for (number, (content, key)) in group.iter().enumerate() {
            keys.insert(
                (resource.clone(), key.clone()),
                format!("{prefix}<{number}>"),
            );
            // Whoever refers to one of several that are alike may as well refer to another of them.
            let first = group.partition_point(|(other, _)| other < content);
            let prefix = name_of(&prefix);
            let made = (name_of(key).to_owned(), format!("{prefix}<{first}>"));
            names.made.push(made);
        }
    }
    // Longer names first: one may be the beginning of another.
    names
        .made
        .sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    // Resources that are left out go last, because others refer to their objects.
    objects.retain(|((resource, _), _)| !masks.resources.contains(resource));
    let normal = objects.into_iter().map(|(id, mut object)| {
        names.replace(&mut object);
        let key = keys.get(&id).cloned();
        let key = key.unwrap_or_else(|| names.text(&id.1));
        ((id.0, key), object)
    });
    normal.collect()
}

/// The name of a key, as `web` of `default/web`.
fn name_of(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

/// The key of this name in the namespace of another.
fn sibling(key: &str, name: &str) -> String {
    match key.rsplit_once('/') {
        Some((namespace, _)) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

fn generated_prefix(object: &Value) -> Option<String> {
    let prefix = object["metadata"]["generateName"].as_str()?;
    let name = object["metadata"]["name"].as_str()?;
    name.starts_with(prefix).then(|| prefix.to_owned())
}

/// Sorts lists of conditions and the like: their order means nothing.
fn sort_by_type(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(sort_by_type),
        Value::Array(items) => {
            items.iter_mut().for_each(sort_by_type);
            if items.iter().all(|item| item.get("type").is_some()) {
                items.sort_by_key(|item| item["type"].to_string());
            }
        }
        _ => {}
    }
}

/// Removes the field at a path of [`unlike`]'s form, which joins names of fields, keys and indexes by dots.
///
/// A key may have dots itself, so every key with which the path can go on is followed. An item of a list is replaced and not
/// removed: the others keep their indexes.
fn mask(value: &mut Value, path: &str) {
    match value {
        Value::Object(fields) => {
            fields.remove(path);
            for (name, value) in fields {
                if let Some(rest) = rest_of(path, name) {
                    mask(value, rest);
                }
            }
        }
        Value::Array(items) => {
            let (index, rest) = match path.split_once('.') {
                Some((index, rest)) => (index, Some(rest)),
                None => (path, None),
            };
            let index = index.parse::<usize>().ok();
            match (index.and_then(|index| items.get_mut(index)), rest) {
                (Some(item), Some(rest)) => mask(item, rest),
                (Some(item), None) => *item = "<masked>".into(),
                (None, _) => {}
            }
        }
        _ => {}
    }
}

/// What follows in a path after a name and a dot, if it begins with them.
fn rest_of<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    path.strip_prefix(name)?.strip_prefix('.')
}

/// What names and uids are replaced with.
struct Names<'a> {
    state: &'a State,
    made: Vec<(String, String)>,
}

impl<'a> Names<'a> {
    fn new(state: &'a State) -> Self {
        let made = Vec::new();
        Self { state, made }
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.replace_fields(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn replace_fields(&self, fields: &mut Map<String, Value>) {
        for name in DROPPED {
            fields.remove(name);
        }
        let generation = fields.get("metadata").and_then(|it| it.get("generation"));
        let generation = generation.cloned();
        if let Some(observed) = fields
            .get_mut("status")
            .and_then(|status| status.get_mut("observedGeneration"))
        {
            let current = Some(&*observed) == generation.as_ref();
            *observed = if current { "<current>" } else { "<behind>" }.into();
        }
        if fields.contains_key("creationTimestamp") {
            fields.remove("generation");
        }
        // In conditions: those of an older generation are shown by the status as a whole.
        if fields
            .get("observedGeneration")
            .is_some_and(Value::is_number)
        {
            fields.remove("observedGeneration");
        }
        fields.values_mut().for_each(|value| self.replace(value));
    }

    fn text(&self, text: &str) -> String {
        if text.len() == UID
            && let Some(((resource, key), incarnation)) = self.state.uids().get(text)
        {
            let alive = self.state.counts().get(&(resource.clone(), key.clone()));
            let alive = alive.is_none_or(|count| count.created == *incarnation);
            let when = if alive { "" } else { " of before" };
            return format!("<uid of {resource} {}{when}>", self.made_text(key));
        }
        if is_time(text) {
            return "<time>".to_owned();
        }
        if text.parse::<IpAddr>().is_ok() {
            return "<address>".to_owned();
        }
        self.made_text(text)
    }

    fn made_text(&self, text: &str) -> String {
        // The volume of a pod's token has a random name.
        if let Some(("", suffix)) = text.split_once("kube-api-access-")
            && suffix.len() == 5
        {
            return "kube-api-access-<random>".to_owned();
        }
        let mut text = self.without_uids(text);
        for (name, made) in &self.made {
            if text.contains(name.as_str()) {
                text = text.replace(name.as_str(), made);
            }
        }
        text
    }
}

impl Names<'_> {
    /// Names can have uids in them: `pvc-275823e0-df20-48d6-9fa8-3dfd78d702b3`.
    fn without_uids(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.len() <= UID {
            return text;
        }
        for (uid, ((resource, key), _)) in self.state.uids() {
            if text.contains(uid.as_str()) {
                text = text.replace(uid.as_str(), &format!("<uid of {resource} {key}>"));
            }
        }
        text
    }
}

/// Where two states differ first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The object that is different.
    pub object: ObjectId,
    /// The field, as `spec.replicas`; empty if the whole object is missing or superfluous.
    pub path: String,
    /// What the reference has.
    pub expected: String,
    /// What this run has.
    pub found: String,
}

/// The first difference of two states, if there is one.
pub(crate) fn difference(expected: &Normal, found: &Normal) -> Option<Difference> {
    let mut ids: Vec<&ObjectId> = expected.keys().chain(found.keys()).collect();
    ids.sort();
    ids.dedup();
    ids.into_iter().find_map(|id| {
        let (path, expected, found) = match (expected.get(id), found.get(id)) {
            (Some(expected), Some(found)) => unlike("", expected, found)?,
            (Some(_), None) => (String::new(), "an object".into(), "none".into()),
            (None, Some(_)) => (String::new(), "none".into(), "an object".into()),
            (None, None) => return None,
        };
        Some(Difference {
            object: id.clone(),
            path,
            expected,
            found,
        })
    })
}

/// The first field in which two values differ.
fn unlike<'a>(
    path: &str,
    expected: &'a Value,
    found: &'a Value,
) -> Option<(String, String, String)> {
    let at = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    if expected == found {
        return None;
    }
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort();
            names.dedup();
            // A field that is not there counts as null.
            let field =
                |fields: &'a Map<String, Value>, name| fields.get(name).unwrap_or(&Value::Null);
            names
                .into_iter()
                .find_map(|name| unlike(&at(name), field(left, name), field(right, name)))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.find_map(|(number, (left, right))| unlike(&at(&number.to_string()), left, right))
        }
        (left, right) => Some((path.to_owned(), left.to_string(), right.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn first_difference_names_object_and_field() {
        let id = ("pods".to_owned(), "n/a".to_owned());
        let state = |value: Value| Normal::from([(id.clone(), value)]);
        let left = state(json!({"spec": {"a": 1, "list": [1, {"b": 2}]}}));
        assert_eq!(difference(&left, &left), None);
        let right = state(json!({"spec": {"a": 1, "list": [1, {"b": 3}]}}));
        let found = difference(&left, &right).expect("they differ");
        assert_eq!(found.path, "spec.list.1.b");
        assert_eq!((&*found.expected, &*found.found), ("2", "3"));
        let found = difference(&left, &Normal::new()).expect("they differ");
        assert_eq!((found.path.as_str(), &*found.found), ("", "none"));
    }

    /// Two pods that a ReplicaSet made, and an Endpoints object that names both in the order of their addresses.
    fn behind_a_service(names: [&str; 2], masks: &Masks) -> Normal {
        let id = |resource: &str, name: &str| (resource.to_owned(), format!("default/{name}"));
        let pod = |name| json!({"metadata": {"name": name, "generateName": "web-"}});
        let mut objects = names.map(|name| (id("pods", name), pod(name))).to_vec();
        let addresses = names.map(|name| json!({"ip": "10.0.0.1", "targetRef": {"name": name}}));
        let subsets = json!({"metadata": {"name": "web"}, "subsets": [{"addresses": addresses}]});
        objects.push((id("endpoints", "web"), subsets));
        comparable(&State::default(), objects, masks)
    }

    #[test]
    fn names_of_objects_that_are_alike_can_be_exchanged() {
        let masks = Masks::default();
        let left = behind_a_service(["web-a", "web-b"], &masks);
        let right = behind_a_service(["web-z", "web-c"], &masks);
        assert_eq!(difference(&left, &right), None);
        assert_eq!(left.len(), 3, "{left:?}");
    }

    #[test]
    fn names_of_resources_that_are_left_out_are_comparable_in_others() {
        let masks = Masks {
            resources: vec!["pods".to_owned()],
            ..Masks::default()
        };
        let left = behind_a_service(["web-a", "web-b"], &masks);
        let right = behind_a_service(["web-z", "web-c"], &masks);
        assert_eq!(difference(&left, &right), None);
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn masked_fields_are_removed() {
        let mut value = json!({"status": {"at": 1, "b": 2}, "spec": {}});
        mask(&mut value, "status.at");
        mask(&mut value, "status.nothing.there");
        mask(&mut value, "spec");
        assert_eq!(value, json!({"status": {"b": 2}}));
    }

    #[test]
    fn masked_item_of_a_list_leaves_the_others_in_their_places() {
        let mut value = json!({"list": [{"a": 1, "b": 2}, 3, 4]});
        for path in ["list.0.a", "list.1", "list.7", "list.x", "list.2.a"] {
            mask(&mut value, path);
        }
        assert_eq!(value, json!({"list": [{"b": 2}, "<masked>", 4]}));
    }

    #[test]
    fn key_with_dots_is_masked_by_its_whole_name() {
        let annotations = json!({"e.io/a": "1", "e.io/a.b": "2", "e": {"io/a": "3", "x": "4"}});
        let mut value = json!({"annotations": annotations});
        mask(&mut value, "annotations.e.io/a");
        let left = json!({"e.io/a.b": "2", "e": {"x": "4"}});
        assert_eq!(value, json!({"annotations": left}));
    }

    #[test]
    fn every_path_of_a_difference_masks_it() {
        let id = ("pods".to_owned(), "n/a".to_owned());
        let state = |value: &Value| Normal::from([(id.clone(), value.clone())]);
        let left = json!({
            "data": {"app.conf": "1", "app.conf.old": "2"},
            "list": [{"name": "a", "ports": [1, 2]}, {"name": "b"}],
        });
        let right = json!({
            "data": {"app.conf": "3", "app.conf.old": "4"},
            "list": [{"name": "a", "ports": [1, 5]}, {"name": "c"}],
        });
        let (mut left, mut right) = (left, right);
        let mut paths = Vec::new();
        while let Some(difference) = difference(&state(&left), &state(&right)) {
            assert!(paths.len() < 9, "{paths:?}");
            mask(&mut left, &difference.path);
            mask(&mut right, &difference.path);
            paths.push(difference.path);
        }
        let expected = [
            "data.app.conf",
            "data.app.conf.old",
            "list.0.ports.1",
            "list.1.name",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn conditions_are_masked_by_their_place_in_a_report() {
        let mut value =
            json!({"conditions": [{"type": "Ready", "at": 1}, {"type": "Available", "at": 2}]});
        sort_by_type(&mut value);
        mask(&mut value, "conditions.0.at");
        let left = json!([{"type": "Available"}, {"type": "Ready", "at": 1}]);
        assert_eq!(value, json!({"conditions": left}));
    }
}
