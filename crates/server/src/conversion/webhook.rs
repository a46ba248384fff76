//! Conversion of custom objects by a webhook: the question, its answer, and what the answer may change.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::callout::{Callout, InvalidTarget, Target};
use crate::environment::Environment;
use crate::kinds::meta;
use crate::kinds::value::{items, strings, text};
use crate::object;

/// Most JSON that is sent for conversion at once, if it is more than one object.
const MAX_BATCH: usize = 2 * 1024 * 1024;
/// How long a webhook may take to convert.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why objects could not be converted. The text is what the client reads.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConversionError(String);

impl From<String> for ConversionError {
    fn from(why: String) -> Self {
        Self(why)
    }
}

/// A webhook that converts the objects of one definition.
#[derive(Debug)]
pub(crate) struct ConversionHook {
    target: Result<Target, InvalidTarget>,
    versions: Vec<String>,
}

impl ConversionHook {
    /// Reads `spec.conversion.webhook` of a definition.
    pub(crate) fn read(webhook: &Value) -> Self {
        let versions = strings(&webhook["conversionReviewVersions"]);
        Self {
            target: Target::read(&webhook["clientConfig"]),
            versions: versions.map(str::to_owned).collect(),
        }
    }

    fn review_version(&self) -> Option<&str> {
        let known = |version: &&String| matches!(version.as_str(), "v1" | "v1beta1");
        self.versions.iter().find(known).map(String::as_str)
    }

    /// Converts objects of one kind to a version, as many at once as a request may hold. Those that are of it already
    /// stay as they are.
    pub(crate) async fn convert(
        &self,
        (callout, environment): (&Callout, &Environment),
        mut objects: Vec<Value>,
        to: &str,
    ) -> Result<Vec<Value>, ConversionError> {
        let places: Vec<usize> = (0..objects.len())
            .filter(|i| text(&objects[*i]["apiVersion"]) != to)
            .collect();
        for batch in batches(&places, |i| objects[i].to_string().len()) {
            let originals: Vec<&Value> = batch.iter().map(|i| &objects[*i]).collect();
            let converted = self
                .convert_batch((callout, environment), &originals, to)
                .await?;
            for (place, object) in batch.into_iter().zip(converted) {
                objects[place] = object;
            }
        }
        Ok(objects)
    }

    async fn convert_batch(
        &self,
        (callout, environment): (&Callout, &Environment),
        originals: &[&Value],
        to: &str,
    ) -> Result<Vec<Value>, ConversionError> {
        let about = originals
            .first()
            .map(|first| about(first))
            .unwrap_or_default();
        let version = self
            .review_version()
            .ok_or_else(|| ConversionError("no supported conversion review versions".into()))?;
        let uid = environment.uid();
        let question = question(version, &uid, originals, to);
        let failed = |why: &dyn fmt::Display| {
            ConversionError(format!("conversion webhook for {about} failed: {why}"))
        };
        let target = self.target.as_ref().map_err(|why| failed(why))?;
        let review = callout.call(target, &question, Some(TIMEOUT)).await;
        let review = review.map_err(|why| failed(&why))?;
        let converted = read_answer(&review, version, &uid);
        let converted = converted.map_err(|why| failed(&why))?;
        accept(originals, converted, to, &about)
    }
}

/// Places in groups that are small enough to be sent at once.
fn batches(places: &[usize], size: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut filled = MAX_BATCH;
    for place in places {
        let more = size(*place);
        if filled + more > MAX_BATCH {
            batches.push(Vec::new());
            filled = 0;
        }
        filled += more;
        if let Some(last) = batches.last_mut() {
            last.push(*place);
        }
    }
    batches
}

/// `example.com/v1, Kind=Widget`
fn about(object: &Value) -> String {
    format!(
        "{}, Kind={}",
        text(&object["apiVersion"]),
        text(&object["kind"])
    )
}

fn question(version: &str, uid: &str, objects: &[&Value], to: &str) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": { "uid": uid, "desiredAPIVersion": to, "objects": objects },
        "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
    })
}

fn read_answer<'a>(
    review: &'a Value,
    version: &str,
    uid: &str,
) -> Result<&'a [Value], ConversionError> {
    let response = &review["response"];
    if version == "v1" {
        let found = about(review);
        let expected = "apiextensions.k8s.io/v1, Kind=ConversionReview";
        if found != expected {
            return Err(ConversionError(format!(
                "expected webhook response of {expected}, got {found}"
            )));
        }
    }
    if !response.is_object() {
        return Err(ConversionError("no response provided".into()));
    }
    let found = text(&response["uid"]);
    if version == "v1" && found != uid {
        return Err(ConversionError(format!(
            "expected response.uid={uid:?}, got {found:?}"
        )));
    }
    let result = &response["result"];
    match (text(&result["status"]), text(&result["message"])) {
        ("Success", _) => Ok(items(&response["convertedObjects"])),
        (status, "") => Err(ConversionError(format!(
            "response.result.status was '{status}', not 'Success'"
        ))),
        (_, message) => Err(ConversionError(message.to_owned())),
    }
}

/// Checks what came back, and gives it the metadata it had: a conversion changes labels and annotations at most.
fn accept(
    originals: &[&Value],
    converted: &[Value],
    to: &str,
    about: &str,
) -> Result<Vec<Value>, ConversionError> {
    let (found, expected) = (converted.len(), originals.len());
    if found != expected {
        return Err(ConversionError(format!(
            "conversion webhook for {about} returned {found} objects, expected {expected}"
        )));
    }
    let mut accepted = Vec::with_capacity(found);
    for (i, (original, converted)) in originals.iter().zip(converted).enumerate() {
        let invalid = |why: ConversionError| {
            format!(
                "conversion webhook for {about} returned invalid converted object at index {i}: {why}"
            )
        };
        check_identity(original, converted, to).map_err(invalid)?;
        let mut object = converted.clone();
        object["metadata"] = metadata(original, converted).map_err(|why| {
            format!("conversion webhook for {about} returned invalid metadata in object at index {i}: {why}")
        })?;
        accepted.push(object);
    }
    Ok(accepted)
}

fn check_identity(original: &Value, converted: &Value, to: &str) -> Result<(), ConversionError> {
    let version = text(&converted["apiVersion"]);
    if version != to {
        return Err(ConversionError(format!(
            "invalid groupVersion (expected {to}, received {version})"
        )));
    }
    let (was, is) = (text(&original["kind"]), text(&converted["kind"]));
    if was != is {
        return Err(ConversionError(format!(
            "invalid kind (expected {was}, received {is})"
        )));
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (
            object::meta_str(original, field),
            object::meta_str(converted, field),
        );
        if was != is {
            return Err(ConversionError(format!(
                "must have the same {shown}: {was} != {is}"
            )));
        }
    }
    Ok(())
}

fn metadata(original: &Value, converted: &Value) -> Result<Value, ConversionError> {
    let answered = object::metadata(converted)
        .ok_or_else(|| ConversionError("missing metadata in converted object".to_owned()))?;
    let mut metadata = object::metadata(original).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(pairs)) => {
                check_pairs(field, pairs, metadata.get(field))?;
                metadata.insert(field.to_owned(), Value::Object(pairs.clone()));
            }
            Some(_) => {
                return Err(ConversionError(format!(
                    "invalid metadata.{field} in converted object"
                )));
            }
        }
    }
    Ok(Value::Object(metadata))
}

fn check_pairs(
    field: &str,
    pairs: &Map<String, Value>,
    before: Option<&Value>,
) -> Result<(), ConversionError> {
    if let Some((key, _)) = pairs.iter().find(|(_, value)| !value.is_string()) {
        return Err(ConversionError(format!(
            "metadata.{field}[{key}] must be a string in converted object"
        )));
    }
    let same = before.and_then(Value::as_object) == Some(pairs);
    let errors = if same {
        Vec::new()
    } else {
        meta::pair_errors(field, &Value::Object(pairs.clone()))
    };
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(ConversionError(one.to_string())),
        many => {
            let messages: Vec<String> = many.iter().map(ToString::to_string).collect();
            Err(ConversionError(format!("[{}]", messages.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: &str = "e.io/v1, Kind=W";

    fn object(version: &str, name: &str, labels: Value) -> Value {
        json!({
            "apiVersion": format!("e.io/{version}"), "kind": "W",
            "metadata": {"name": name, "uid": "u", "generation": 3, "labels": labels},
        })
    }

    fn check(converted: Vec<Value>, expect: Result<(), &str>) {
        let original = object("v1", "a", json!({"x": "1"}));
        let found = accept(&[&original], &converted, "e.io/v2", ABOUT).map(drop);
        assert_eq!(found.map_err(|e| e.0), expect.map_err(str::to_owned));
    }

    #[test]
    fn batches_are_as_large_as_they_may_be() {
        let sizes = [MAX_BATCH / 2, MAX_BATCH / 2, 1, 2 * MAX_BATCH, 1];
        assert_eq!(
            batches(&[0, 1, 2, 3, 4], |i| sizes[i]),
            [vec![0, 1], vec![2], vec![3], vec![4]]
        );
        assert!(batches(&[], |_| 0).is_empty());
    }

    #[test]
    fn conversions_keep_identities() {
        check(vec![object("v2", "a", json!({}))], Ok(()));
        check(
            vec![],
            Err("conversion webhook for e.io/v1, Kind=W returned 0 objects, expected 1"),
        );
        check(
            vec![object("v2", "b", json!({}))],
            Err(
                "conversion webhook for e.io/v1, Kind=W returned invalid converted object at index 0: must have the same name: a != b",
            ),
        );
        check(
            vec![object("v1", "a", json!({}))],
            Err(
                "conversion webhook for e.io/v1, Kind=W returned invalid converted object at index 0: invalid groupVersion (expected e.io/v2, received e.io/v1)",
            ),
        );
    }

    #[test]
    fn conversions_keep_kind_namespace_and_uid_and_have_metadata() {
        let changed = |change: fn(&mut Value)| {
            let mut converted = object("v2", "a", json!({}));
            change(&mut converted);
            vec![converted]
        };
        for (converted, why) in [
            (
                changed(|it| it["kind"] = json!("V")),
                "invalid kind (expected W, received V)",
            ),
            (
                changed(|it| it["metadata"]["namespace"] = json!("n")),
                "must have the same namespace:  != n",
            ),
            (
                changed(|it| it["metadata"]["uid"] = Value::Null),
                "must have the same UID: u != ",
            ),
        ] {
            let expect = format!(
                "conversion webhook for {ABOUT} returned invalid converted object at index 0: {why}"
            );
            check(converted, Err(&expect));
        }
        let mut bare = object("v1", "a", json!({}));
        bare["metadata"] = json!({});
        let answer = json!({"apiVersion": "e.io/v2", "kind": "W"});
        let refused = accept(&[&bare], &[answer], "e.io/v2", ABOUT).map_err(|e| e.0);
        let why = refused.expect_err("it has no metadata");
        assert!(
            why.ends_with("missing metadata in converted object"),
            "{why}"
        );
    }

    #[test]
    fn conversions_change_labels_and_annotations_alone() {
        let original = object("v1", "a", json!({"x": "1"}));
        let mut converted = object("v2", "a", json!({"y": "2"}));
        converted["metadata"]["generation"] = json!(9);
        converted["metadata"]["finalizers"] = json!(["f"]);
        let accepted = accept(&[&original], &[converted], "e.io/v2", ABOUT).expect("accepted");
        let metadata = &accepted[0]["metadata"];
        assert_eq!(metadata["labels"], json!({"y": "2"}));
        assert_eq!(metadata["generation"], 3);
        assert!(metadata["finalizers"].is_null());
    }

    #[test]
    fn answers_say_whether_they_succeeded() {
        let review = |result: Value| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "response": {"uid": "u", "result": result, "convertedObjects": [1]},
            })
        };
        for (result, expect) in [
            (json!({"status": "Success"}), Ok(1)),
            (json!({"status": "Failed", "message": "no"}), Err("no")),
            (
                json!({"status": "Failed"}),
                Err("response.result.status was 'Failed', not 'Success'"),
            ),
        ] {
            let review = review(result);
            let found = read_answer(&review, "v1", "u").map(<[Value]>::len);
            assert_eq!(found.map_err(|e| e.0), expect.map_err(str::to_owned));
        }
    }
}
