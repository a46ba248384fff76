//! Objects of YAML files as kubectl reads them, and whether two files have the same ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::process::{self, End};

/// How long kubectl may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// Objects by kind, namespace and name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// The objects of a text. The cluster of the kubeconfig is asked what the kinds are called, and nothing is created.
pub(crate) fn read(kubeconfig: &Path, text: &str) -> Result<Objects> {
    let mut kubectl = Command::new("kubectl");
    kubectl
        .args(["create", "--dry-run=client", "--validate=false"])
        .args(["-o", "json", "-f", "-"])
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", kubeconfig.parent().unwrap_or(Path::new("/")));
    let output = process::run(&mut kubectl, text, PATIENCE)?;
    if output.end != End::Exited(0) {
        bail!("{}{}", output.stdout, output.stderr);
    }
    parse(&output.stdout)
}

/// The objects that kubectl printed, one after the other or in lists.
fn parse(printed: &str) -> Result<Objects> {
    let values = serde_json::Deserializer::from_str(printed).into_iter::<Value>();
    let mut found = Objects::new();
    for value in values {
        let value = value.context("kubectl prints no JSON")?;
        let items = match value["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![value],
        };
        for item in items {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &item["metadata"];
            let name = format!(
                "{} {}/{}",
                text(&item["kind"]),
                text(&metadata["namespace"]),
                text(&metadata["name"])
            );
            let other = found.insert(name.clone(), item);
            ensure!(other.is_none(), "{name} is there twice");
        }
    }
    Ok(found)
}

/// Fails unless both have the same objects, with what differs. Gives how many there are.
pub(crate) fn compare(ours: &Objects, theirs: &Objects) -> Result<usize> {
    for (name, object) in ours {
        let other = theirs.get(name);
        let other = other.with_context(|| format!("{name} is missing"))?;
        if let Some(place) = difference(object, other, String::new()) {
            bail!("{name} differs at {place}");
        }
    }
    if let Some(name) = theirs.keys().find(|name| !ours.contains_key(*name)) {
        bail!("{name} is too much");
    }
    ensure!(!ours.is_empty(), "there are no objects");
    Ok(ours.len())
}

/// The first place where two values differ, if they do.
fn difference(one: &Value, other: &Value, place: String) -> Option<String> {
    if one == other {
        return None;
    }
    let fields = |value: &Value| -> Vec<String> {
        let fields = value.as_object().into_iter().flatten();
        fields.map(|(name, _)| name.clone()).collect()
    };
    if one.is_object() && other.is_object() {
        let names = fields(one).into_iter().chain(fields(other));
        let mut places = names
            .filter_map(|name| difference(&one[&name], &other[&name], format!("{place}.{name}")));
        return places.next();
    }
    Some(format!("{place}: {one} and {other}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str =
        r#"{"kind": "Role", "metadata": {"name": "a", "namespace": "b"}, "rules": [1]}"#;

    #[test]
    fn objects_are_found_alone_and_in_lists() {
        let list = r#"{"kind": "List", "items": [{"kind": "Role", "metadata": {"name": "c"}}]}"#;
        let found = parse(&format!("{ROLE}\n{list}")).expect("objects");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["Role /c", "Role b/a"]);
        assert!(parse(&format!("{ROLE}{ROLE}")).is_err());
        assert!(parse("namespace/a created").is_err());
    }

    #[test]
    fn what_differs_is_named() {
        let check = |text: &str, expected: &str| {
            let (ours, theirs) = (parse(ROLE), parse(text));
            let said = compare(&ours.expect("objects"), &theirs.expect("objects"));
            let said = said.map_or_else(|error| error.to_string(), |count| count.to_string());
            assert_eq!(said, expected);
        };
        check(ROLE, "1");
        check(
            &ROLE.replace("[1]", "[2]"),
            "Role b/a differs at .rules: [1] and [2]",
        );
        check("", "Role b/a is missing");
        let more = ROLE.replace("\"a\"", "\"x\"");
        check(&format!("{ROLE}{more}"), "Role b/x is too much");
    }
}
