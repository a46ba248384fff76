//! What a token says.

use serde::{Deserialize, Deserializer, Serialize};

/// The claims of a token, in the order in which they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    #[serde(rename = "aud", deserialize_with = "one_or_many")]
    pub(super) audiences: Vec<String>,
    #[serde(rename = "exp")]
    pub(super) expires: i64,
    #[serde(rename = "iat")]
    pub(super) issued: i64,
    #[serde(rename = "iss")]
    pub(super) issuer: String,
    #[serde(rename = "jti")]
    pub(super) id: String,
    #[serde(rename = "kubernetes.io")]
    pub(super) bound: Bound,
    #[serde(rename = "nbf")]
    pub(super) not_before: i64,
    #[serde(rename = "sub")]
    pub(super) subject: String,
}

/// What the token stands for, and what it ends with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bound {
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) secret: Option<Reference>,
    #[serde(rename = "serviceaccount")]
    pub(super) service_account: Reference,
}

/// One object, told from a later one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reference {
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub(super) uid: String,
}

/// An audience may stand alone, without a list around it.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(one) => vec![one],
        Audience::Many(many) => many,
    })
}
