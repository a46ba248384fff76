//! The authorities that a projected volume puts into a pod.
//!
//! Mirrors `clustertrustbundle.InformerManager`. A kubelet shuffles the certificates; here they are in order.

use std::collections::BTreeSet;

use k8s_openapi::api::certificates::v1::ClusterTrustBundle;
use k8s_openapi::api::core::v1::ClusterTrustBundleProjection;

use super::sources::Sources;
use super::volume_error::VolumeError;
use crate::scheduler::selector::Selector;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// The length of a line of a certificate.
const LINE: usize = 64;

/// The certificates of a source, or why there are none.
pub(super) fn certificates(
    source: &ClusterTrustBundleProjection,
    sources: &dyn Sources,
) -> Result<String, VolumeError> {
    let optional = source.optional == Some(true);
    if let Some(name) = &source.name {
        return match sources.trust_bundle(name) {
            Some(bundle) => Ok(joined([&*bundle])),
            None if optional => Ok(String::new()),
            None => Err(VolumeError::NoTrustBundle(name.clone())),
        };
    }
    let Some(signer) = &source.signer_name else {
        return Err(VolumeError::NoSigner);
    };
    let selector = Selector::of(source.label_selector.as_ref());
    let none = Default::default();
    let mut bundles = sources.trust_bundles();
    bundles.retain(|bundle| {
        let labels = bundle.metadata.labels.as_ref().unwrap_or(&none);
        bundle.spec.signer_name.as_ref() == Some(signer) && selector.matches(labels)
    });
    if bundles.is_empty() && !optional {
        return Err(VolumeError::NoneOfSigner);
    }
    Ok(joined(bundles.iter().map(|bundle| &**bundle)))
}

/// The certificates of bundles, each of them once.
fn joined<'a>(bundles: impl IntoIterator<Item = &'a ClusterTrustBundle>) -> String {
    let mut bodies = BTreeSet::new();
    for bundle in bundles {
        let blocks = bundle.spec.trust_bundle.split(BEGIN).skip(1);
        let blocks = blocks.filter_map(|block| Some(block.split_once(END)?.0));
        bodies.extend(blocks.map(|body| body.split_whitespace().collect::<String>()));
    }
    let mut text = String::new();
    for body in bodies {
        text += BEGIN;
        for (index, character) in body.chars().enumerate() {
            if index % LINE == 0 {
                text.push('\n');
            }
            text.push(character);
        }
        text += "\n";
        text += END;
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn certificates_of_bundles_are_there_once_and_in_order() {
        let bundle = |text: String| -> ClusterTrustBundle {
            let object = json!({"metadata": {"name": "b"}, "spec": {"trustBundle": text}});
            serde_json::from_value(object).expect("a bundle")
        };
        let pem = |body: &str| format!("{BEGIN}\n{body}\n{END}\n");
        let long = "A".repeat(70);
        let one = bundle(format!("# ours\n{}{}", pem("BBBB"), pem(&long)));
        let two = bundle(pem("BB\nBB"));
        let lines = format!("{}\n{}", &long[..64], &long[64..]);
        assert_eq!(joined([&one, &two]), pem(&lines) + &pem("BBBB"));
        assert_eq!(joined([]), "");
    }
}
