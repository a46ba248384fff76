//! The one way into the store: a write, what it depends on, and its result.

use super::effects::kind_accepts;
use crate::admission::{QuotaCheck, QuotaError};
use crate::core::Core;
use crate::derived::{DEFINITIONS, Prepared};
use crate::flow::release_while;
use crate::object;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{Change, CommitError, Committed, Event, Write};

/// Why a write was not done.
#[derive(Debug)]
pub(super) enum CommitFailure {
    /// The object is not as the writer has seen it, or the store cannot write.
    Store(CommitError),
    /// Something besides the object has changed since the write was admitted.
    Refused(ApiError),
}

impl From<ApiError> for CommitFailure {
    fn from(error: ApiError) -> Self {
        CommitFailure::Refused(error)
    }
}

impl From<CommitFailure> for ApiError {
    fn from(failure: CommitFailure) -> Self {
        match failure {
            CommitFailure::Store(error) => ApiError::internal(error),
            CommitFailure::Refused(error) => error,
        }
    }
}

impl Core {
    /// Does one write and waits until it is as durable as the store promises. What follows from it is in force when
    /// anybody can see it; dropping the future does not undo anything.
    pub(super) async fn commit(
        &self,
        served: &Served,
        write: Write,
        quota: Option<QuotaCheck>,
    ) -> Result<Committed, CommitFailure> {
        let mut prepared = self.prepare_definition(served, &write)?;
        let mut refusal = None;
        let check = |event: &Event| {
            let current = is_current(served, event);
            if let Err(error) = current.and_then(|()| self.has_room(served, quota.as_ref())) {
                refusal = Some(error);
                return false;
            }
            if let Some(prepared) = prepared.take() {
                self.derived.stage(prepared);
            }
            true
        };
        let committed = release_while(served.collection.commit_durable_if(write, check)).await;
        committed.map_err(|error| match (error, refusal) {
            (CommitError::Unmet, Some(refusal)) => CommitFailure::Refused(refusal),
            (error, _) => CommitFailure::Store(error),
        })
    }

    /// Checks quotas for the last time.
    fn has_room(&self, served: &Served, quota: Option<&QuotaCheck>) -> Result<(), ApiError> {
        let Some(quota) = quota else {
            return Ok(());
        };
        self.derived
            .quotas
            .check(quota)
            .map_err(|error| match error {
                QuotaError::Exceeded(why) => {
                    ApiError::forbidden(served.about(), object::name(quota.object()), &why)
                }
                QuotaError::Uncounted => {
                    let why = "a quota of the namespace has just changed, please try again";
                    ApiError::too_many_requests(why, 1)
                }
            })
    }

    fn prepare_definition(
        &self,
        served: &Served,
        write: &Write,
    ) -> Result<Option<Prepared>, ApiError> {
        let (Write::Create { draft, .. } | Write::Update { draft, .. }) = write else {
            return Ok(None);
        };
        if served.collection.name() != DEFINITIONS {
            return Ok(None);
        }
        let value = serde_json::from_slice(&draft.body).map_err(ApiError::internal)?;
        Prepared::read(&value, Some(&self.registry), &self.store).map(Some)
    }
}

/// Refuses to store an object of a kind that is not defined any more as it was when the object was made: a new one
/// would come back when the kind is defined again, and one of another stored version would be read as what it is not.
fn is_current(served: &Served, event: &Event) -> Result<(), ApiError> {
    let Some(definition) = &served.definition else {
        return Ok(());
    };
    match event.change() {
        Change::Deleted { .. } => Ok(()),
        _ if definition.is_ended() => Err(ApiError::redefined(served.about())),
        Change::Created => kind_accepts(served, event.record().name()),
        Change::Updated { .. } => Ok(()),
    }
}
