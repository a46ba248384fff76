//! The envelope of questions and answers: which version it is, and what is in it.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::admission::{Request, Response};
use crate::conversion::ObjectConversionError;

/// What is wrong with a review; there is nobody to answer but with these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoReview(String);

/// A question about a request, in the version that it came in.
#[derive(Debug)]
pub(crate) struct AdmissionReview {
    api_version: String,
    pub(crate) request: Request,
}

/// A question for objects in another version.
#[derive(Debug)]
pub(crate) struct ConversionReview {
    api_version: String,
    pub(crate) request: ConversionRequest,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversionRequest {
    pub(crate) uid: String,
    #[serde(rename = "desiredAPIVersion")]
    pub(crate) desired: String,
    pub(crate) objects: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<T> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<T>,
}

/// Opens an envelope of one of these versions.
fn open<'a, T: Deserialize<'a>>(
    body: &'a [u8],
    kind: &str,
    versions: &[&str],
) -> Result<(String, T), NoReview> {
    let envelope: Envelope<T> = serde_json::from_slice(body)
        .map_err(|error| NoReview(format!("this is no {kind}: {error}")))?;
    let Envelope {
        api_version,
        kind: found,
        request,
    } = envelope;
    if found != kind || !versions.contains(&api_version.as_str()) {
        let known = versions.join(" or ");
        return Err(NoReview(format!(
            "{kind} of {known} is wanted, not {found:?} of {api_version:?}"
        )));
    }
    match request {
        Some(request) => Ok((api_version, request)),
        None => Err(NoReview(format!("the {kind} has no request"))),
    }
}

impl AdmissionReview {
    pub(crate) fn read(body: &[u8]) -> Result<Self, NoReview> {
        let versions = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
        let (api_version, request) = open(body, "AdmissionReview", &versions)?;
        Ok(Self {
            api_version,
            request,
        })
    }

    /// Closes the envelope again. The request is gone by then.
    pub(crate) fn answer(api_version: &str, uid: &str, response: &Response) -> Value {
        json!({
            "apiVersion": api_version, "kind": "AdmissionReview", "response": response.to_json(uid),
        })
    }

    pub(crate) fn into_parts(self) -> (String, Request) {
        (self.api_version, self.request)
    }
}

impl ConversionReview {
    pub(crate) fn read(body: &[u8]) -> Result<Self, NoReview> {
        let versions = ["apiextensions.k8s.io/v1"];
        let (api_version, request) = open(body, "ConversionReview", &versions)?;
        Ok(Self {
            api_version,
            request,
        })
    }

    /// The objects, or why one of them cannot be converted.
    pub(crate) fn answer(
        api_version: &str,
        uid: &str,
        converted: Result<Vec<Value>, ObjectConversionError>,
    ) -> Value {
        let response = match converted {
            Ok(objects) => json!({
                "uid": uid, "result": {"status": "Success"}, "convertedObjects": objects,
            }),
            Err(error) => json!({
                "uid": uid, "result": {"status": "Failure", "message": error.to_string()},
            }),
        };
        json!({ "apiVersion": api_version, "kind": "ConversionReview", "response": response })
    }

    pub(crate) fn into_parts(self) -> (String, ConversionRequest) {
        (self.api_version, self.request)
    }
}
