//! Names in OpenAPI documents: definitions, operations, tags.

/// `io.ex.stable.v1.Foo` for kind `Foo` of `stable.ex.io/v1`: how definitions of custom kinds are named.
pub(super) fn custom_definition(group: &str, version: &str, kind: &str) -> String {
    let labels: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", labels.join("."))
}

/// `AppsV1`: the part of an operation's name that tells group and version.
pub(super) fn operation_infix(group: &str, version: &str) -> String {
    let mut infix = camel_case(short_group(group));
    capitalize(&mut infix);
    let mut version = camel_case(version);
    capitalize(&mut version);
    infix + &version
}

/// `apps_v1`: the tag of every operation of a group and version.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{}", camel_case(short_group(group)), camel_case(version))
}

/// The text with a capital first letter.
pub(super) fn capitalized(text: &str) -> String {
    let mut text = text.to_owned();
    capitalize(&mut text);
    text
}

fn short_group(group: &str) -> &str {
    match group {
        "" => "core",
        _ => group.strip_suffix(".k8s.io").unwrap_or(group),
    }
}

fn capitalize(text: &mut str) {
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
}

/// Drops what is neither letter, digit nor underscore, and capitalizes the letter after it.
fn camel_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut capital = false;
    for (at, c) in text.char_indices() {
        if c.is_alphabetic() || c == '_' || (at != 0 && c.is_numeric()) {
            out.push(if capital { c.to_ascii_uppercase() } else { c });
            capital = false;
        } else {
            capital = true;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_tags_are_named_after_group_and_version() {
        for (group, version, infix, expected_tag) in [
            ("", "v1", "CoreV1", "core_v1"),
            ("apps", "v1", "AppsV1", "apps_v1"),
            (
                "rbac.authorization.k8s.io",
                "v1",
                "RbacAuthorizationV1",
                "rbacAuthorization_v1",
            ),
            (
                "cert-manager.io",
                "v1alpha2",
                "CertManagerIoV1alpha2",
                "certManagerIo_v1alpha2",
            ),
            ("4chan.org", "v1", "ChanOrgV1", "ChanOrg_v1"),
        ] {
            assert_eq!(operation_infix(group, version), infix);
            assert_eq!(tag(group, version), expected_tag);
        }
    }

    #[test]
    fn custom_definitions_start_with_the_reversed_group() {
        let name = custom_definition("stable.example.com", "v1", "CronTab");
        assert_eq!(name, "com.example.stable.v1.CronTab");
    }
}
