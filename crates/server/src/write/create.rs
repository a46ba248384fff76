//! New objects: named, given what only the server can give, validated, stored.

use serde_json::Value;

use super::effects;
use super::metadata::{begin_metadata, match_namespace, wipe_metadata};
use super::{WriteRequest, Written};
use crate::admission::Operation;
use crate::core::Core;
use crate::derived::Reservation;
use crate::http::query::Persist;
use crate::kinds::{self, CreateContext};
use crate::object;
use crate::status::ApiError;
use crate::storage::{CommitError, Write};

use super::commit::CommitFailure;

/// How often a name is made up for a `generateName` before giving up.
const NAME_ATTEMPTS: usize = 8;

impl Core {
    /// Creates an object that has been decoded.
    pub(crate) async fn create(
        &self,
        request: &WriteRequest,
        mut new: Value,
    ) -> Result<Written, ApiError> {
        match_namespace(&mut new, request.namespace.as_deref())?;
        request.served.default(&mut new);
        self.manage(request, None, &mut new);
        self.admit_create(request, &mut new).await?;
        self.check_escalation(request, None, &new)?;
        let about = request.served.about();
        let prefix = object::meta_str(&new, "generateName").to_owned();
        if !object::name(&new).is_empty() || prefix.is_empty() {
            return match Box::pin(self.create_once(request, new)).await {
                Err(CreateError::Exists(name)) => Err(ApiError::already_exists(about, &name)),
                Err(CreateError::Refused(error)) => Err(error),
                Ok(written) => Ok(written),
            };
        }
        let mut taken = String::new();
        for _ in 0..NAME_ATTEMPTS {
            let mut candidate = new.clone();
            let name = generated_name(&prefix, &self.environment.name_suffix());
            object::set_meta(&mut candidate, "name", name);
            match Box::pin(self.create_once(request, candidate)).await {
                Err(CreateError::Exists(name)) => taken = name,
                Err(CreateError::Refused(error)) => return Err(error),
                Ok(written) => return Ok(written),
            }
        }
        Err(ApiError::generate_name_conflict(about, &taken))
    }

    /// Runs mutating admission, which sees a new object without what a client cannot bring along.
    async fn admit_create(&self, request: &WriteRequest, new: &mut Value) -> Result<(), ApiError> {
        let name = object::name(new).to_owned();
        let Some(admission) = request.admission(Operation::Create, &name) else {
            return Ok(());
        };
        wipe_metadata(new);
        self.mutate(Some(&admission), new, &Value::Null).await?;
        match_namespace(new, request.namespace.as_deref())
    }

    /// The steps that depend on the object's name.
    async fn create_once(
        &self,
        request: &WriteRequest,
        mut new: Value,
    ) -> Result<Written, CreateError> {
        let served = &request.served;
        let _reservation = self.prepare_create(request, &mut new)?;
        request.warnings.extend(served.strategy().warnings(&new));
        let name = object::name(&new).to_owned();
        let admission = request.admission(Operation::Create, &name);
        let quota = self.inspect(admission.as_ref(), &new, &Value::Null).await?;
        let key = served.key(request.namespace.as_deref(), &name);
        if request.persist == Persist::DryRun {
            return match served.collection.get(&key) {
                Some(_) => Err(CreateError::Exists(name)),
                None => Ok(Written::Value {
                    value: self.converter.as_if_stored(served, new).await?,
                    version: None,
                }),
            };
        }
        // Storage refuses these, which is why a dry run does not, and why everything else is reported first.
        if !object::resource_version(&new).is_empty() {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::unreasoned(why).into());
        }
        let draft = self.converter.draft(served, new).await?;
        match self
            .commit(served, Write::Create { key, draft }, quota)
            .await
        {
            Ok(committed) => Ok(Written::Stored(committed.record)),
            Err(CommitFailure::Store(CommitError::AlreadyExists { .. })) => {
                Err(CreateError::Exists(name))
            }
            Err(failure) => Err(ApiError::from(failure).into()),
        }
    }

    /// Gives a new object what the server alone can give, and validates it.
    fn prepare_create(
        &self,
        request: &WriteRequest,
        new: &mut Value,
    ) -> Result<Reservation, ApiError> {
        let served = &request.served;
        effects::kind_accepts(served, object::name(new))?;
        let (uid, now) = (self.environment.uid(), self.environment.now_rfc3339());
        begin_metadata(new, &uid, &now);
        let (uid, now) = (uid.as_str(), now.as_str());
        served
            .strategy()
            .prepare_for_create(new, &CreateContext { uid, now });
        if let Some(user) = request.user()
            && served.is("certificates.k8s.io", "CertificateSigningRequest")
        {
            kinds::certificates::set_requester(new, user);
        }
        let reservation = effects::before_create(self, served, new)?;
        let mut errors = served.validate(new);
        effects::validate_create(self, request, new, &mut errors);
        if errors.is_empty() {
            return Ok(reservation);
        }
        let (about, name) = (served.about_kind(), object::name(new));
        Err(ApiError::invalid(about, name, &errors))
    }
}

/// Why a create did not happen.
enum CreateError {
    Exists(String),
    Refused(ApiError),
}

impl From<ApiError> for CreateError {
    fn from(error: ApiError) -> Self {
        CreateError::Refused(error)
    }
}

/// A prefix cut so that the name stays within 63 characters, and a suffix.
fn generated_name(prefix: &str, suffix: &str) -> String {
    let most = 63 - suffix.len();
    let cut = prefix
        .char_indices()
        .map(|(i, c)| i + c.len_utf8())
        .take_while(|end| *end <= most)
        .last()
        .unwrap_or(0);
    format!("{}{suffix}", &prefix[..cut])
}
