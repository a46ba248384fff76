//! New objects: named, given what only the server can give, validated, stored.

use std::sync::Arc;

use serde_json::Value;

use super::{Part, Written, match_namespace};
use crate::admission::{self, Asked, Operation};
use crate::core::Core;
use crate::derived::CommitFailure;
use crate::fields::Writer;
use crate::http::query::Persist;
use crate::kinds::{self, CreateContext};
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{CommitError, Write};

/// How often a name is made up for a `generateName` before giving up.
const NAME_ATTEMPTS: usize = 8;

impl Core {
    /// Creates an object that has been decoded.
    pub(crate) async fn create(
        &self,
        served: &Arc<Served>,
        namespace: Option<&str>,
        mut value: Value,
        writer: &Writer,
        warnings: &mut Vec<String>,
    ) -> Result<Written, ApiError> {
        match_namespace(&mut value, namespace)?;
        served.default(&mut value);
        self.manage(served, None, &mut value, Part::Whole, writer);
        let requester = writer.requester();
        let asked = requester.as_deref().map(|requester| Asked {
            served,
            operation: Operation::Create,
            subresource: "",
            namespace,
            name: "",
            requester,
            persist: writer.persist,
        });
        if let Some(asked) = asked {
            let name = object::name(&value).to_owned();
            let asked = Asked {
                name: &name,
                ..asked
            };
            wipe_metadata(&mut value);
            Box::pin(self.mutate(&asked, &mut value, &Value::Null, warnings)).await?;
            match_namespace(&mut value, namespace)?;
        }
        let generated =
            object::name(&value).is_empty() && !object::meta_str(&value, "generateName").is_empty();
        let prefix = object::meta_str(&value, "generateName").to_owned();
        for attempt in 1.. {
            if generated {
                object::set_meta(
                    &mut value,
                    "name",
                    generated_name(&prefix, &self.environment.name_suffix()),
                );
            }
            // A name of the client's own is tried once, so its object need not be kept for another attempt.
            let candidate = if generated {
                value.clone()
            } else {
                std::mem::take(&mut value)
            };
            let written = self
                .create_once(
                    served,
                    namespace,
                    candidate,
                    writer.persist,
                    asked,
                    warnings,
                )
                .await;
            match written {
                Err(CreateError::Exists(name)) if generated && attempt < NAME_ATTEMPTS => {
                    tracing::debug!(name, "generated name is taken");
                }
                Err(CreateError::Exists(name)) if generated => {
                    return Err(ApiError::generate_name_conflict(served.about(), &name));
                }
                Err(CreateError::Exists(name)) => {
                    return Err(ApiError::already_exists(served.about(), &name));
                }
                Err(CreateError::Refused(error)) => return Err(error),
                Ok(written) => return Ok(written),
            }
        }
        unreachable!("the loop returns at the last attempt")
    }

    async fn create_once(
        &self,
        served: &Arc<Served>,
        namespace: Option<&str>,
        mut value: Value,
        persist: Persist,
        asked: Option<Asked<'_>>,
        warnings: &mut Vec<String>,
    ) -> Result<Written, CreateError> {
        admission::kind_accepts(served, object::name(&value))?;
        let (uid, now) = (self.environment.uid(), self.environment.now_rfc3339());
        begin_metadata(&mut value, &uid, &now);
        served.strategy().prepare_for_create(
            &mut value,
            &CreateContext {
                uid: &uid,
                now: &now,
            },
        );
        if let Some(asked) = &asked
            && served.is("certificates.k8s.io", "CertificateSigningRequest")
        {
            kinds::certificates::set_requester(&mut value, &asked.requester.user);
        }
        let _reservation = admission::before_create(self, served, &mut value)?;
        let mut errors = served.validate(&value);
        admission::validate_create(served, &value, &mut errors);
        if !errors.is_empty() {
            return Err(
                ApiError::invalid(served.about_kind(), object::name(&value), &errors).into(),
            );
        }
        warnings.extend(served.strategy().warnings(&value));
        let name = object::name(&value).to_owned();
        let mut quota = None;
        if let Some(asked) = asked {
            let asked = Asked {
                name: &name,
                ..asked
            };
            quota = Box::pin(self.inspect(&asked, &value, &Value::Null, warnings)).await?;
        }
        let key = served.key(namespace, &name);
        if persist == Persist::DryRun {
            return match served.collection.get(&key) {
                Some(_) => Err(CreateError::Exists(name)),
                None => Ok(Written::Value {
                    value,
                    version: None,
                }),
            };
        }
        // Storage refuses these, which is why a dry run does not, and why everything else is told first.
        if !object::resource_version(&value).is_empty() {
            return Err(ApiError::unreasoned(
                "resourceVersion should not be set on objects to be created",
            )
            .into());
        }
        let write = Write::Create {
            key,
            draft: self.draft(served, value).await?,
        };
        match self.commit(served, write, quota).await {
            Ok(committed) => Ok(Written::Stored(committed.record)),
            Err(CommitFailure::Store(CommitError::AlreadyExists { .. })) => {
                Err(CreateError::Exists(name))
            }
            Err(failure) => Err(ApiError::from(failure).into()),
        }
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

/// Takes away metadata that a client cannot bring along.
fn wipe_metadata(value: &mut Value) {
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "uid",
        "creationTimestamp",
    ] {
        object::remove_meta(value, field);
    }
}

/// Metadata that the server alone sets.
fn begin_metadata(value: &mut Value, uid: &str, now: &str) {
    wipe_metadata(value);
    object::remove_meta(value, "generation");
    object::set_meta(value, "uid", uid);
    object::set_meta(value, "creationTimestamp", now);
}
