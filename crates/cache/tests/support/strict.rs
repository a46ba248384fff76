//! A ConfigMap whose data is a digit, for those who want objects that do not decode: `World::update("a", "x")` makes one.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A ConfigMap as a strict reader sees it.
#[derive(Debug, Clone, Serialize, Deserialize, Resource)]
#[resource(inherit = ConfigMap)]
pub(crate) struct Strict {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) data: Data,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Data {
    pub(crate) n: Option<Digit>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Digit {
    #[serde(rename = "0")]
    Zero,
    #[serde(rename = "1")]
    One,
}
