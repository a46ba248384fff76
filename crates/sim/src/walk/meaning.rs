//! What fields mean by convention: a field called `image` is an image. Such values have an effect on real controllers, where
//! any text would only be refused.

use serde_json::{Value, json};

/// Words that the name of a field ends with, and values that such fields take.
const TEXTS: &[(&[&str], &[&str])] = &[
    (
        &["image"],
        &[
            "registry.example.com/walk:v1",
            "registry.example.com/walk:v2",
        ],
    ),
    (
        &["imagepullpolicy", "pullpolicy"],
        &["Always", "IfNotPresent"],
    ),
    (&["namespace", "namespaces"], &["default", "kube-public"]),
    (
        &["accessmode", "accessmodes"],
        &["ReadWriteOnce", "ReadOnlyMany"],
    ),
    (
        &["storageclass", "storageclassname", "class"],
        &["standard", "fast"],
    ),
    (&["schedule", "cron"], &["*/5 * * * *", "0 3 * * *"]),
    (
        &["duration", "timeout", "interval", "period", "ttl", "delay"],
        &["30s", "2m", "1h"],
    ),
    (
        &[
            "size", "storage", "memory", "capacity", "quota", "limit", "request",
        ],
        &["1Gi", "2Gi", "3Gi"],
    ),
    (&["cpu"], &["250m", "1"]),
    (
        &["url", "uri", "endpoint"],
        &["https://walk.example.com", "https://other.example.com"],
    ),
    (
        &["host", "hostname", "domain"],
        &["walk.example.com", "other.example.com"],
    ),
    (&["cidr", "subnet"], &["10.1.0.0/24", "10.2.0.0/24"]),
    (&["email"], &["walk@example.com", "other@example.com"]),
    (&["version", "tag"], &["1.2.3", "1.2.4"]),
    (&["restartpolicy"], &["Always", "OnFailure", "Never"]),
    (&["path"], &["/walk", "/other"]),
    (
        &["time", "timestamp", "date", "deadline"],
        &["2031-01-01T00:00:00Z"],
    ),
    (&["name"], &["walk-a", "walk-b"]),
];

/// The same for whole numbers.
const NUMBERS: &[(&[&str], &[i64])] = &[
    (&["replicas", "size", "count", "instances"], &[2, 3, 1]),
    (&["port"], &[8080, 9090]),
    (&["seconds", "minutes", "period"], &[30, 60]),
    (&["percent", "percentage"], &[50, 25]),
];

/// Values that a field of this name usually has. Whether its schema allows them is for others to check.
pub(crate) fn values(name: &str, schema: &Value) -> Vec<Value> {
    let name = name.to_ascii_lowercase();
    let is_number = matches!(schema["type"].as_str(), Some("integer" | "number"));
    if is_number {
        return of(NUMBERS, &name, |number| json!(number));
    }
    let is_text = schema["type"] == "string" || schema["x-kubernetes-int-or-string"] == true;
    if is_text {
        of(TEXTS, &name, |text| json!(text))
    } else {
        Vec::new()
    }
}

/// The values of the longest word that the name ends with.
fn of<T>(table: &[(&[&str], &[T])], name: &str, to_value: impl Fn(&T) -> Value) -> Vec<Value> {
    let fitting = table.iter().filter_map(|(words, values)| {
        let words = words.iter().filter(|word| name.ends_with(**word));
        words
            .map(|word| word.len())
            .max()
            .map(|length| (length, values))
    });
    let longest = fitting.max_by_key(|(length, _)| *length);
    let values = longest.map_or(&[][..], |(_, values)| values);
    values.iter().map(to_value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_word_that_a_name_ends_with_says_what_it_means() {
        let text = json!({"type": "string"});
        for (name, expected) in [
            ("storageClassName", "standard"),
            ("deploymentName", "walk-a"),
            ("image", "registry.example.com/walk:v1"),
            ("destinationNamespaces", "default"),
        ] {
            assert_eq!(
                values(name, &text).first(),
                Some(&json!(expected)),
                "{name}"
            );
        }
        assert_eq!(values("replicas", &json!({"type": "integer"})).len(), 3);
        assert_eq!(values("replicas", &json!({"type": "boolean"})).len(), 0);
        assert_eq!(values("comment", &text).len(), 0);
    }
}
