//! Which rule the names of a kind's objects follow, for whole names and for the start of a generated one.

use kubewright_schema::names;

/// Rule for the names of a kind's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS-1123 subdomain of up to 253 characters.
    Subdomain,
    /// A DNS-1123 label of up to 63 characters.
    Label,
    /// A DNS-1035 label of up to 63 characters, which begins with a letter.
    Label1035,
    /// Anything that fits into one segment of a path.
    PathSegment,
}

impl NameRule {
    /// The complaints about a whole name, none for a good one.
    pub(crate) fn check(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Subdomain => names::dns1123_subdomain(name),
            NameRule::Label => names::dns1123_label(name),
            NameRule::Label1035 => names::dns1035_label(name),
            NameRule::PathSegment => names::path_segment_name(name),
        }
    }

    /// The complaints about a `generateName`: a trailing dash is allowed, because characters will follow it.
    pub(crate) fn check_prefix(self, prefix: &str) -> Vec<String> {
        if self == NameRule::PathSegment {
            return names::path_segment_prefix(prefix);
        }
        match prefix.as_bytes() {
            // The dash and the character before it give way to a letter.
            [head @ .., before, b'-'] if before.is_ascii() => {
                self.check(&format!("{}a", &prefix[..head.len()]))
            }
            _ => self.check(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generate_name_may_end_in_a_dash() {
        assert!(NameRule::Subdomain.check_prefix("gen-").is_empty());
        assert!(!NameRule::Subdomain.check_prefix("Gen-").is_empty());
        assert!(!NameRule::Label.check_prefix("-").is_empty());
        assert!(!NameRule::Label.check_prefix("é-").is_empty());
    }
}
