//! Webhooks: what an API server asks before it stores an object, or when it needs one in another version.
//!
//! ```text
//! POST /mutate-…    AdmissionReview ─ Defaulting<K>: fn(&mut K) ─────────────→ a patch
//! POST /validate-…  AdmissionReview ─ Validating<K>: fn(&K, Option<&K>) ─────→ yes, or why not
//! POST /…           AdmissionReview ─ Admission: fn(Request) ────────────────→ any response
//! POST /convert     ConversionReview ─ Converter<Hub> ───────────────────────→ the objects in another version
//! ```
//!
//! [`Webhooks`] is all of this as a function from bytes to bytes; who listens, and with which certificate, is somebody
//! else's matter. A function that panics, an object that does not decode and a review that is none are answers that say
//! so: nothing here ends a process.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_webhook::{FieldError, FieldErrors, Webhooks};
//!
//! fn default(map: &mut ConfigMap) {
//!     map.immutable.get_or_insert(true);
//! }
//!
//! fn validate(map: &ConfigMap, _old: Option<&ConfigMap>) -> Result<(), FieldErrors> {
//!     let mut errors = FieldErrors::new();
//!     if !map.data.as_ref().is_some_and(|data| data.contains_key("motto")) {
//!         errors.push(FieldError::required("data.motto", "every map needs one"));
//!     }
//!     errors.into_result()
//! }
//!
//! let webhooks = Webhooks::new()
//!     .defaulting("/mutate", default)
//!     .validating("/validate", validate);
//! # drop(webhooks);
//! ```

mod admission;
mod conversion;
mod defaulting;
mod field_error;
mod overlay;
mod patch;
mod review;
mod router;
mod state;
mod validating;

use std::future::Future;
use std::pin::Pin;

pub use admission::{Admission, GroupVersionResource, Operation, Request, Response, Subject};
pub use conversion::{Converter, Spoke, same_fields};
pub use defaulting::Defaulting;
pub use field_error::{FieldError, FieldErrors};
pub use router::{Answer, Webhooks};
pub use state::{MissingState, States};
pub use validating::{Denial, IntoValidationResult, Validating, ValidationResult};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
