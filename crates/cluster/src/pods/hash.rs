//! Names for templates: a short hash that differs when the template does.
//!
//! The real system hashes a dump of its Go structs; nobody can compute the same value elsewhere, and nobody needs to.
//! What matters is that the value is stable, short, and made of letters that spell no words.

use serde_json::Value;

/// Letters and digits without vowels and look-alikes, as in generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// The hash of what a value says, changed by how often it collided before.
pub(crate) fn of(value: &Value, collisions: Option<i32>) -> String {
    let hash = fnv(OFFSET, value.to_string().as_bytes());
    let hash = match collisions {
        Some(count) => fnv(hash, &i64::from(count).to_le_bytes()),
        None => hash,
    };
    spell(hash)
}

/// FNV-1a, continued from `start`.
fn fnv(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(PRIME)
    })
}

/// Each decimal digit as a letter that cannot offend.
fn spell(hash: u32) -> String {
    let digits = hash.to_string();
    let letter = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    digits.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_hash_alike_and_others_differ() {
        let value = json!({"spec": {"containers": [{"name": "a"}]}});
        let other = json!({"spec": {"containers": [{"name": "b"}]}});
        assert_eq!(of(&value, None), of(&value.clone(), None));
        assert_ne!(of(&value, None), of(&other, None));
    }

    #[test]
    fn a_collision_gives_another_name() {
        let value = json!({"a": 1});
        let names = [None, Some(0), Some(1), Some(2)].map(|count| of(&value, count));
        for (at, name) in names.iter().enumerate() {
            assert!(!names[at + 1..].contains(name), "{names:?}");
        }
    }

    #[test]
    fn template_as_a_value_has_the_text_of_the_template() {
        let template: PodTemplateSpec = serde_json::from_value(json!({
            "metadata": {"labels": {"b": "1", "a": "2"}, "annotations": {"x": "y"}},
            "spec": {
                "hostname": "h", "hostPID": true, "hostUsers": false, "hostIPC": true, "dnsPolicy": "Default",
                "containers": [{
                    "name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
                    "resources": {"requests": {"memory": "1Gi", "cpu": 1}}, "env": [{"value": "v", "name": "n"}],
                }],
                "volumes": [{"name": "v", "configMap": {"name": "m"}}, {"name": "w", "emptyDir": {}}],
                "terminationGracePeriodSeconds": 5,
            },
        }))
        .expect("it is a template");
        let value = serde_json::to_value(&template).expect("it serialises");
        let text = serde_json::to_string(&template).expect("it serialises");
        // Names of ReplicaSets are the same whichever of the two is hashed.
        assert_eq!(value.to_string(), text);
    }

    #[test]
    fn names_are_spelled_without_vowels() {
        let name = of(&json!({}), None);
        assert!(
            name.bytes().all(|letter| ALPHABET.contains(&letter)),
            "{name}"
        );
        assert!(name.len() <= 10, "{name}");
    }

    #[test]
    fn the_hash_is_stable() {
        // Names of ReplicaSets outlive the process that gave them.
        assert_eq!(fnv(OFFSET, b"foobar"), 0xbf9c_f968);
        assert_eq!(spell(1_234_567_890), "56789bcdf4");
    }
}
