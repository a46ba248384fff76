//! One request for objects: what it is about, and what its answer has to carry.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::access::{Attributes, Resource, Subject};
use crate::admission::{Operation, Requester};
use crate::auth::User;
use crate::core::Core;
use crate::http::accept::{Accept, Representation};
use crate::http::body::{self, BodyFormat};
use crate::http::query::{FieldValidation, Persist, Query};
use crate::http::respond::{self, Answer};
use crate::printers::{self, Headers, InvalidIncludeObject, MetaVersion, Options, Row};
use crate::request::{Part, Warnings};
use crate::resource::Served;
use crate::status::ApiError;
use crate::write::{WriteRequest, Written, field_manager};

/// A request for objects.
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    pub(crate) served: Arc<Served>,
    pub(crate) namespace: Option<String>,
    /// Empty when the request is about the collection.
    pub(crate) name: String,
    pub(crate) query: Query,
    pub(crate) headers: Arc<HeaderMap>,
    pub(crate) accept: Accept,
    pub(crate) user: User,
    /// Sent along whether the request succeeds or not.
    pub(crate) warnings: Warnings,
}

impl Call {
    /// The key of the object that the request names.
    pub(crate) fn key(&self) -> String {
        self.served.key(self.namespace.as_deref(), &self.name)
    }

    /// The write that the request asks for, of a part of the object.
    pub(crate) fn write_request(&self, persist: Persist, part: Part) -> WriteRequest {
        let server = WriteRequest::by_server(&self.served, &self.name, part);
        let request = WriteRequest {
            namespace: self.namespace.clone(),
            persist,
            manager: field_manager(&self.headers, &self.query),
            warnings: self.warnings.clone(),
            ..server
        };
        request.by(Requester::writing(self.user.clone(), &self.query))
    }

    /// The refusal when that object is not there.
    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.served.about(), &self.name)
    }

    /// How the object in the request is written.
    pub(crate) fn body_format(&self) -> Result<BodyFormat, ApiError> {
        body::format(&self.headers, self.served.protobuf())
    }

    /// Refuses what the user may not do with the object. The request itself was allowed before; this is for what it
    /// turns out to be.
    pub(crate) fn authorize(&self, verb: &str) -> Result<(), ApiError> {
        let resource = Resource {
            group: &self.served.resource.group,
            version: &self.served.resource.version,
            plural: &self.served.resource.plural,
            subresource: "",
            namespace: self.namespace.as_deref().unwrap_or(""),
            name: self.name.as_str().into(),
        };
        let asked = Attributes {
            verb: verb.into(),
            subject: Subject::Resource(resource),
        };
        self.core.access.authorize(&self.user, &asked)
    }

    /// Admits an object that is posted to a subresource and is not stored. It comes back as admission changed it.
    pub(crate) async fn admit_posted(
        &self,
        subresource: &'static str,
        object: Value,
        persist: Persist,
    ) -> Result<Value, ApiError> {
        let request = self.write_request(persist, Part::Own(subresource));
        match request.admission(Operation::Create, &self.name) {
            Some(admission) => self.core.admit_posted(&admission, object).await,
            None => Ok(object),
        }
    }

    /// Admits the options of a connection to the object. They come back as admission changed them.
    pub(crate) async fn admit_connection(
        &self,
        subresource: &'static str,
        options: Value,
    ) -> Result<Value, ApiError> {
        let request = self.write_request(Persist::Store, Part::Own(subresource));
        match request.admission(Operation::Connect, &self.name) {
            Some(admission) => self.core.admit_posted(&admission, options).await,
            None => Ok(options),
        }
    }

    /// Deals with unknown and duplicate fields as the client wished.
    pub(crate) fn strict(
        &self,
        strict: Vec<String>,
        validation: FieldValidation,
    ) -> Result<(), ApiError> {
        match validation {
            FieldValidation::Strict if !strict.is_empty() => Err(self
                .served
                .unhandled(&format!("strict decoding error: {}", strict.join(", ")))),
            FieldValidation::Warn => {
                self.warnings.extend(strict);
                Ok(())
            }
            FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
        }
    }

    /// Answers with an object that was written.
    pub(crate) async fn answer_written(
        &self,
        code: StatusCode,
        written: &Written,
    ) -> Result<Answer, ApiError> {
        let body = self.core.written(&self.served, written).await?;
        self.answer_object(code, body)
    }

    /// Answers with an object, compact JSON of the served version, in the representation asked for.
    pub(crate) fn answer_object(&self, code: StatusCode, body: Bytes) -> Result<Answer, ApiError> {
        let body = match self.accept.representation {
            Representation::Object | Representation::Discovery(_) => body,
            Representation::PartialMetadata(version) => {
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                printers::partial_metadata(&object, version).into()
            }
            Representation::Table(version) => {
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                let options = self.table_options(version)?;
                let now = self.core.environment.now();
                let row = Row {
                    object: &object,
                    bytes: &body,
                };
                let printer = &self.served.printer;
                printer.single(options, Headers::Shown, row, now).into()
            }
        };
        Ok(respond::json(code, self.accept.format, body))
    }

    /// How the client wants its table.
    pub(crate) fn table_options(&self, version: MetaVersion) -> Result<Options, ApiError> {
        let include = self.query.get("includeObject").unwrap_or("");
        let include = include
            .parse()
            .map_err(|e: InvalidIncludeObject| ApiError::bad_request(e.to_string()))?;
        Ok(Options { version, include })
    }
}
