//! Failures that are expected, each with its reason.

/// A test that fails, and why it may.
struct Expected {
    package: &'static str,
    /// Part of the name of the test or spec.
    name: &'static str,
    reason: &'static str,
}

const DOWNLOAD: &str = "the test downloads kube-apiserver 1.28 to see discovery without aggregation; it says nothing of this server";

const EXPECTED: &[Expected] = &[Expected {
    package: "pkg/client/apiutil",
    name: "aggregatedDiscovery=false",
    reason: DOWNLOAD,
}];

/// Why a failure is expected, if it is.
pub(crate) fn reason(package: &str, name: &str) -> Option<&'static str> {
    let found = EXPECTED
        .iter()
        .find(|e| e.package == package && name.contains(e.name));
    found.map(|e| e.reason)
}

/// Expected failures of a package that did not happen.
pub(crate) fn outlived(package: &str, failed: &[String]) -> Vec<&'static str> {
    EXPECTED
        .iter()
        .filter(|e| e.package == package && !failed.iter().any(|name| name.contains(e.name)))
        .map(|e| e.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_expected_in_its_own_package_alone() {
        let name = "TestApiMachinery/aggregatedDiscovery=false";
        assert_eq!(reason("pkg/client/apiutil", name), Some(DOWNLOAD));
        assert_eq!(reason("pkg/client", name), None);
        assert_eq!(outlived("pkg/client/apiutil", &[name.to_owned()]), [""; 0]);
        assert_eq!(
            outlived("pkg/client/apiutil", &[]),
            ["aggregatedDiscovery=false"]
        );
    }
}
