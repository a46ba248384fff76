//! Systems outside of the cluster that an operator manages: a database, a cloud. Their calls pass the same gates.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::identity::WriteId;
use crate::life::Life;
use crate::plan::Fault;
use crate::trace::Wrote;

/// The resource under which calls of external systems are in traces and plans.
pub(crate) const RESOURCE: &str = "external";

/// How long a call that nobody answers takes.
const SILENT_FOR: Duration = Duration::from_secs(40);

/// A model of a system outside of the cluster. There is one for each run, and it outlives the operator's processes.
pub trait ExternalSystem: Send + Sync + 'static {
    /// Everything that can be seen of it, to be compared with the reference. When the workload has removed what it made, it
    /// has to be what it was at the beginning.
    fn state(&self) -> Value;
}

/// The external system of a run, for the oracles and for one process of the operator.
pub(crate) trait AnyExternal: Send + Sync {
    fn state(&self) -> Value;
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<E: ExternalSystem> AnyExternal for E {
    fn state(&self) -> Value {
        ExternalSystem::state(self)
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// An external system as one process of the operator reaches it. Cheap to clone.
pub struct External<E> {
    pub(crate) system: Arc<E>,
    pub(crate) life: Life,
}

/// Why a call of an external system failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// The system refused and did nothing.
    #[error("the external system answers {0}")]
    Refused(u16),
    /// The call may have happened or not: there was no answer.
    #[error("the external system did not answer")]
    NoAnswer,
}

impl<E: ExternalSystem> External<E> {
    /// Reads from the system. Reads have no faults.
    pub fn read<T>(&self, read: impl FnOnce(&E) -> T) -> T {
        read(&self.system)
    }

    /// Changes something: the process may die before or after it, the system may refuse, and the answer may be lost.
    /// `verb` and `key` name the call in plans and timelines.
    ///
    /// # Errors
    /// When the plan of the run says so.
    pub async fn call<T>(
        &self,
        verb: &str,
        key: &str,
        change: impl FnOnce(&E) -> T,
    ) -> Result<T, ExternalError> {
        self.life.check().await;
        let director = &self.life.director;
        let id = director.name_call(verb, RESOURCE, key.to_owned(), 0);
        let fault = director.fault_at_write(&id);
        match &fault {
            Some(Fault::CrashBefore(_)) => self.life.crash().await,
            Some(Fault::Refuse(code, _)) => {
                self.note(id, *code, false);
                return Err(ExternalError::Refused(*code));
            }
            Some(Fault::Silence(_)) => {
                self.note(id, 0, false);
                tokio::time::sleep(SILENT_FOR).await;
                return Err(ExternalError::NoAnswer);
            }
            _ => {}
        }
        let before = self.system.state();
        let answer = change(&self.system);
        self.note(id, 200, before != self.system.state());
        match fault {
            Some(Fault::CrashAfter(_)) => self.life.crash().await,
            Some(Fault::LoseAnswer(_)) => Err(ExternalError::NoAnswer),
            _ => Ok(answer),
        }
    }

    fn note(&self, id: WriteId, code: u16, effective: bool) {
        self.life.director.wrote(Wrote {
            id,
            code,
            effective,
            created: None,
            by_uid: true,
        });
    }
}

impl<E> Clone for External<E> {
    fn clone(&self) -> Self {
        Self {
            system: self.system.clone(),
            life: self.life.clone(),
        }
    }
}

impl<E> fmt::Debug for External<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("External")
    }
}
