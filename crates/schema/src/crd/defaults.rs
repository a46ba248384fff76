//! Defaults of the CRD object itself, and the status that a new one starts with.

use serde_json::{Map, Value, json};

/// Fills in what the author of a CRD left out: `singular`, `listKind`, the conversion strategy, the port of a
/// conversion webhook's service, and the stored version of an object that came without a status.
pub fn default_definition(crd: &mut Value) {
    if let Some(spec) = member(crd, "spec") {
        default_names(spec);
        default_conversion(spec);
    }
    let stored = crd["status"]["storedVersions"].as_array();
    if stored.is_none_or(Vec::is_empty)
        && let Some(version) = storage_version(crd)
        && let Some(crd) = crd.as_object_mut()
        && let Some(status) = entry(crd, "status", json!({})).as_object_mut()
    {
        status.insert("storedVersions".into(), json!([version]));
    }
}

/// Prepares a CRD for creation: whatever status was sent is replaced by the initial one, which names the storage
/// version and has accepted no names yet.
pub fn reset_status(crd: &mut Value) {
    let stored: Vec<String> = storage_version(crd).into_iter().collect();
    let stored = if stored.is_empty() {
        Value::Null
    } else {
        json!(stored)
    };
    if let Some(crd) = crd.as_object_mut() {
        let status = json!({
            "conditions": null,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored,
        });
        crd.insert("status".into(), status);
    }
}

/// Prepares a CRD for an update: the status stays the old one, and remembers the new storage version.
pub fn carry_status(crd: &mut Value, old: &Value) {
    let storage = storage_version(crd);
    let Some(object) = crd.as_object_mut() else {
        return;
    };
    object.insert("status".into(), old["status"].clone());
    let (Some(version), Some(status)) = (storage, member(crd, "status")) else {
        return;
    };
    if let Some(stored) = entry(status, "storedVersions", json!([])).as_array_mut()
        && !stored.iter().any(|v| *v == version)
    {
        stored.push(version.into());
    }
}

fn default_names(spec: &mut Map<String, Value>) {
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = text(names, "kind").to_owned();
    if text(names, "singular").is_empty() && !kind.is_empty() {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if text(names, "listKind").is_empty() && !kind.is_empty() {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
}

fn default_conversion(spec: &mut Map<String, Value>) {
    let conversion = entry(spec, "conversion", json!({"strategy": "None"}));
    let service = conversion.pointer_mut("/webhook/clientConfig/service");
    if let Some(service) = service.and_then(Value::as_object_mut) {
        entry(service, "port", json!(443));
    }
}

fn storage_version(crd: &Value) -> Option<String> {
    let versions = crd["spec"]["versions"].as_array()?;
    let storage = versions.iter().find(|v| v["storage"] == true)?;
    storage["name"].as_str().map(str::to_owned)
}

/// The value of a key, put there when it is absent or null.
fn entry<'a>(map: &'a mut Map<String, Value>, key: &str, default: Value) -> &'a mut Value {
    let value = map.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = default;
    }
    value
}

fn member<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(key)?.as_object_mut()
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars() -> Value {
        json!({
            "metadata": {"name": "bars.ex.io"},
            "spec": {
                "group": "ex.io",
                "names": {"plural": "bars", "kind": "Bar"},
                "versions": [{"name": "v1", "served": true, "storage": true}],
            },
        })
    }

    #[test]
    fn new_definition_gets_names_conversion_and_initial_status() {
        let mut crd = bars();
        default_definition(&mut crd);
        reset_status(&mut crd);
        assert_eq!(
            crd["spec"]["names"],
            json!({"plural": "bars", "singular": "bar", "kind": "Bar", "listKind": "BarList"})
        );
        assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
        assert_eq!(
            crd["status"],
            json!({
                "conditions": null,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": ["v1"],
            })
        );
    }

    #[test]
    fn webhook_service_gets_its_port() {
        let mut crd = bars();
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"service": {"name": "a", "namespace": "b"}}},
        });
        default_definition(&mut crd);
        assert_eq!(
            crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"],
            443
        );
    }

    #[test]
    fn update_keeps_the_status_and_remembers_the_storage_version() {
        let mut old = bars();
        reset_status(&mut old);
        old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
        let mut new = bars();
        new["spec"]["versions"][0]["name"] = json!("v2");
        new["status"] = json!({"storedVersions": ["forged"]});
        carry_status(&mut new, &old);
        assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
        assert_eq!(new["status"]["conditions"], old["status"]["conditions"]);
    }
}
