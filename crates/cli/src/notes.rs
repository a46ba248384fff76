//! What people have to know about what they have just deployed, printed at the end.

use kubewright_manifests::Inventory;
use serde_json::Value;

/// What is different on a cluster without the webhooks of a program, if it has any.
pub(crate) fn left_out(inventory: &Inventory) -> Option<String> {
    let hooks = inventory.webhooks.iter().map(|hook| hook.name.as_str());
    let hooks: Vec<&str> = hooks.collect();
    let mut lines = Vec::new();
    if !hooks.is_empty() {
        lines.push(format!(
            "Webhooks are left out, and nobody asks: {}.",
            hooks.join(", ")
        ));
    }
    let definitions = inventory.definitions.iter();
    let converted = definitions.filter(|definition| {
        let conversion = definition.spec.conversion.as_ref();
        conversion.is_some_and(|conversion| conversion.strategy == "Webhook")
    });
    let kinds: Vec<&str> = converted.map(|it| it.spec.names.kind.as_str()).collect();
    if !kinds.is_empty() {
        lines.push(format!(
            "Conversions are left out: {} serve their stored version alone.",
            kinds.join(", ")
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What does not work before the manager is deployed, if these definitions need it for their conversions.
pub(crate) fn conversions(definitions: &[Value]) -> Option<String> {
    let by_webhook = |object: &&Value| object["spec"]["conversion"]["strategy"] == "Webhook";
    let converted = definitions.iter().filter(by_webhook);
    let kinds: Vec<&str> = converted
        .filter_map(|object| object["spec"]["names"]["kind"].as_str())
        .collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "{}: a webhook of the manager converts between the versions, and the cluster reaches it through a Service. Until the \
             manager is deployed only the stored version works; kubewright run does not change that.",
            kinds.join(", ")
        )
    })
}

/// A number and what is counted, in the singular or the plural.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Says so, if there is something to say.
pub(crate) fn tell(note: Option<&str>) {
    if let Some(text) = note {
        eprintln!("\n{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_work_is_said_of_those_that_it_concerns() {
        let definition = |strategy: &str| {
            json!({
                "metadata": {"name": "as.b.io"},
                "spec": {
                    "group": "b.io", "scope": "Cluster", "versions": [],
                    "names": {"kind": "A", "plural": "as"}, "conversion": {"strategy": strategy},
                },
            })
        };
        let inventory = |strategy: &str| -> Inventory {
            let value = json!({
                "definitions": [definition(strategy)], "rules": [], "webhooks": [], "controllers": [],
            });
            serde_json::from_value(value).expect("it is an inventory")
        };
        assert_eq!(left_out(&inventory("None")), None);
        assert_eq!(conversions(&[definition("None")]), None);
        let note = left_out(&inventory("Webhook")).expect("there is something to say");
        assert!(note.contains("A serve their stored version"), "{note}");
        let note = conversions(&[definition("Webhook")]).expect("there is something to say");
        assert!(note.starts_with("A: a webhook"), "{note}");
    }
}
