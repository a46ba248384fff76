//! Steps that all verbs share: admission, and the check that nobody grants what they do not have.

use serde_json::Value;

use super::WriteRequest;
use crate::access::escalation;
use crate::admission::{AdmissionRequest, QuotaCheck};
use crate::core::Core;
use crate::resource::scale;
use crate::status::ApiError;

impl Core {
    /// Runs mutating admission on what was sent: the object, or its scale. `new` is null for a delete, `old` for a
    /// create. Writes of the server itself are not admitted.
    pub(super) async fn mutate(
        &self,
        admission: Option<&AdmissionRequest<'_>>,
        new: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        let Some(request) = admission else {
            return Ok(());
        };
        if request.subresource != scale::NAME {
            return Box::pin(self.admission.mutate(request, new, old)).await;
        }
        let served = request.served;
        let (mut scale, before) = (scale::of(served, new), scale::of(served, old));
        Box::pin(self.admission.mutate(request, &mut scale, &before)).await?;
        scale::put(served, new, &scale);
        Ok(())
    }

    /// Runs validating admission on what was sent. What comes back has to hold when the object is stored.
    pub(super) async fn inspect(
        &self,
        admission: Option<&AdmissionRequest<'_>>,
        new: &Value,
        old: &Value,
    ) -> Result<Option<QuotaCheck>, ApiError> {
        let Some(request) = admission else {
            return Ok(None);
        };
        if request.subresource != scale::NAME {
            return Box::pin(self.admission.inspect(request, new, old)).await;
        }
        let (scale, before) = (
            scale::of(request.served, new),
            scale::of(request.served, old),
        );
        Box::pin(self.admission.inspect(request, &scale, &before)).await
    }

    /// Admits an object of a subresource that is not stored, such as an Eviction or the options of a connection. It
    /// comes back as admission changed it.
    pub(crate) async fn admit_posted(
        &self,
        request: &AdmissionRequest<'_>,
        mut object: Value,
    ) -> Result<Value, ApiError> {
        Box::pin(self.admission.mutate(request, &mut object, &Value::Null)).await?;
        Box::pin(self.admission.inspect(request, &object, &Value::Null)).await?;
        Ok(object)
    }

    /// Refuses a role or binding that grants more than its writer has.
    pub(super) fn check_escalation(
        &self,
        request: &WriteRequest,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), ApiError> {
        let Some(user) = request.user() else {
            return Ok(());
        };
        let check = escalation::EscalationCheck {
            access: &self.access,
            served: &request.served,
            user,
            namespace: request.namespace.as_deref().unwrap_or(""),
            name: &request.name,
        };
        check.run(old, new)
    }
}
