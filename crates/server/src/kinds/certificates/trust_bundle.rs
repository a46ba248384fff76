//! ClusterTrustBundles: authorities that pods can have mounted (validation.go: `ValidateClusterTrustBundle`).

use kubewright_schema::{FieldError, names};
use serde_json::{Value, json};

use super::pem;
use super::validate_signer_name;
use crate::kinds::checks::{Errors, immutable, invalid_each};
use crate::kinds::name_rule::NameRule;
use crate::kinds::path::Path;
use crate::kinds::strategy::{FieldLabels, Strategy};
use crate::kinds::value::text;
use crate::object;

pub(in crate::kinds) static CLUSTER_TRUST_BUNDLE: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    field_labels: FieldLabels::Listed(&["metadata.name", "spec.signerName"]),
    validate: |object, errors| {
        let (name, signer) = (object::name(object), text(&object["spec"]["signerName"]));
        let complaints = name_complaints(name, signer);
        invalid_each(complaints, name, &Path::Root("metadata.name"), errors);
        if !signer.is_empty() {
            validate_signer_name(signer, &Path::Root("spec.signerName"), errors);
        }
    },
    validate_create_only: validate_bundle,
    validate_update: |new, old, errors| {
        let signer = Path::Root("spec.signerName");
        immutable(
            &new["spec"]["signerName"],
            &old["spec"]["signerName"],
            &signer,
            errors,
        );
        if new["spec"]["trustBundle"] != old["spec"]["trustBundle"] {
            validate_bundle(new, errors);
        }
    },
    fields: |object| {
        let signer = text(&object["spec"]["signerName"]).to_owned();
        vec![("spec.signerName", signer)]
    },
    ..Strategy::PLAIN
};

/// A bundle of a signer has the signer in its name: `example.com:signer:name` (names.go: `ValidateClusterTrustBundleName`).
fn name_complaints(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            let why = "ClusterTrustBundle without signer name must not have \":\" in its name";
            return vec![why.to_owned()];
        }
        return names::dns1123_subdomain(name);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => names::dns1123_subdomain(rest),
        None => vec![format!(
            "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        )],
    }
}

fn validate_bundle(object: &Value, errors: &mut Errors) {
    let complaints = pem::trust_anchor_complaints(text(&object["spec"]["trustBundle"]));
    let omitted = json!("<value omitted>");
    for why in complaints {
        errors.push(FieldError::invalid("spec.trustBundle", &omitted, &why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::create_errors;

    fn authority() -> String {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.self_signed(&key).expect("signed").pem()
    }

    fn errors(name: &str, signer: &str, bundle: &str) -> Vec<String> {
        let object = json!({"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": bundle}});
        create_errors("certificates.k8s.io", "ClusterTrustBundle", object)
    }

    #[test]
    fn bundles_of_a_signer_have_it_in_their_name() {
        let bundle = authority();
        assert_eq!(
            errors("test.test:signer-one:0", "test.test/signer-one", &bundle),
            Vec::<String>::new()
        );
        assert_eq!(errors("plain", "", &bundle), Vec::<String>::new());
        for (name, signer) in [
            ("a:b", ""),
            ("plain", "test.test/signer-one"),
            ("test.test:s:UP", "test.test/s"),
        ] {
            assert_eq!(errors(name, signer, &bundle).len(), 1, "{name}");
        }
    }

    #[test]
    fn bundles_are_authorities_each_once() {
        let bundle = authority();
        for (text, expected) in [
            (
                "garbage".to_owned(),
                "at least one trust anchor must be provided",
            ),
            (format!("{bundle}{bundle}"), "duplicate trust anchor"),
            (
                "-----BEGIN X-----\nAAAA\n-----END X-----\n".to_owned(),
                "entry 0 has bad block type: X",
            ),
        ] {
            let found = errors("plain", "", &text);
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        }
    }
}
