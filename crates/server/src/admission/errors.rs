//! Why admission does not let a request pass, before it is put into the words of the API.

/// Why a plugin refuses a request. The text is what the client reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PluginRefusal(pub(super) String);

/// Why a policy, or the rules of a webhook, cannot be applied to a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PolicyError(pub(super) String);

impl From<String> for PluginRefusal {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for PluginRefusal {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl From<String> for PolicyError {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for PolicyError {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}
