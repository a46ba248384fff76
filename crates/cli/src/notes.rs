//! What of a program does not work yet, said where people would expect it to.

use kubewright_manifests::Inventory;

/// What users of webhooks have to know, if the program has any.
pub(crate) fn webhooks(inventory: &Inventory) -> Option<String> {
    let names: Vec<&str> = inventory
        .webhooks
        .iter()
        .map(|hook| hook.name.as_str())
        .collect();
    let converted: Vec<&str> = inventory
        .definitions
        .iter()
        .filter(|definition| {
            let conversion = definition.spec.conversion.as_ref();
            conversion.is_some_and(|conversion| conversion.strategy == "Webhook")
        })
        .map(|definition| definition.spec.names.kind.as_str())
        .collect();
    let mut lines = Vec::new();
    if !names.is_empty() {
        lines.push(format!(
            "Not there yet: deploy makes no certificate for webhooks and leaves these out: {}.\n\
             Their configurations are in config/webhook, for you to read. kubewright dev has them called.",
            names.join(", ")
        ));
    }
    if !converted.is_empty() {
        lines.push(format!(
            "Not there yet: deploy makes no certificate for conversions; on the cluster, requests for versions that are not \
             stored fail: {}. kubewright dev has them converted.",
            converted.join(", ")
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
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
    fn webhooks_and_conversions_are_said_not_to_be_served() {
        let inventory = |webhooks: serde_json::Value, strategy: &str| -> Inventory {
            let definition = json!({
                "metadata": {"name": "as.b.io"},
                "spec": {
                    "group": "b.io", "scope": "Cluster", "versions": [],
                    "names": {"kind": "A", "plural": "as"}, "conversion": {"strategy": strategy},
                },
            });
            serde_json::from_value(json!({
                "definitions": [definition], "rules": [], "webhooks": webhooks, "controllers": [],
            }))
            .expect("it is an inventory")
        };
        assert_eq!(webhooks(&inventory(json!([]), "None")), None);
        let text = webhooks(&inventory(json!([]), "Webhook")).expect("there is something to say");
        assert!(
            text.contains("conversions") && text.contains(": A."),
            "{text}"
        );
    }
}
