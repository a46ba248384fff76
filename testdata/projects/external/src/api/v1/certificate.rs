//! The kind `Certificate` of `cert-manager.io/v1`, from its definition.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wanted.
#[kubewright::schema]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Certificate",
    shortname = "cert",
    shortname = "certs",
    namespaced,
    status = "CertificateStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// The names that the certificate is for.
    pub dns_names: Option<Vec<String>>,
    /// How long it is valid, such as 2160h.
    pub duration: Option<String>,
    #[serde(rename = "isCA")]
    pub is_ca: Option<bool>,
    /// Who signs it.
    pub issuer_ref: CertificateIssuerRef,
    /// The Secret that the certificate is put into.
    pub secret_name: String,
}

/// Who signs it.
#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CertificateIssuerRef {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub name: String,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    #[k8s(list = map("type"))]
    pub conditions: Option<Vec<CertificateStatusCondition>>,
    #[k8s(format = "date-time")]
    pub not_after: Option<String>,
    pub revision: Option<i64>,
}

#[kubewright::schema]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatusCondition {
    pub message: Option<String>,
    pub reason: Option<String>,
    pub status: CertificateStatusConditionStatus,
    pub r#type: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub enum CertificateStatusConditionStatus {
    #[default]
    True,
    False,
    Unknown,
}
