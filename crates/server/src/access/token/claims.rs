//! What a token says.

use serde::{Deserialize, Deserializer, Serialize};

/// The claims of a token, in the order in which they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    #[serde(rename = "aud", deserialize_with = "one_or_many")]
    pub(crate) audiences: Vec<String>,
    #[serde(rename = "exp")]
    pub(crate) expires: i64,
    #[serde(rename = "iat")]
    pub(crate) issued: i64,
    #[serde(rename = "iss")]
    pub(crate) issuer: String,
    #[serde(rename = "jti")]
    pub(crate) id: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) bound: Bound,
    #[serde(rename = "nbf")]
    pub(crate) not_before: i64,
    #[serde(rename = "sub")]
    pub(crate) subject: String,
}

/// What the token stands for, and what it ends with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) secret: Option<Reference>,
    #[serde(rename = "serviceaccount")]
    pub(crate) service_account: Reference,
}

/// One object, distinguished by its uid from a later one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub(crate) uid: String,
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
