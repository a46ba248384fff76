//! Keeps flow control in step with the stored FlowSchemas and PriorityLevelConfigurations.
//!
//! A task of its own follows their changes, as the API server of Kubernetes does (`apf_controller.go`): what a request
//! changed is obeyed a moment later.

use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::flow_control::GROUP;
use crate::core::Core;
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{At, Cursor};

/// Obeys what is stored until the server stops, which this does not keep alive.
pub(crate) async fn follow_flow_control(core: Weak<Core>, stopping: CancellationToken) {
    loop {
        let Some(server) = core.upgrade() else { return };
        if let Err(error) = server.ensure_mandatory_flow_control().await {
            tracing::warn!(%error, "mandatory flow control objects could not be made");
        }
        let changes = match server.load_flow_control() {
            Ok(changes) => changes,
            Err(error) => {
                tracing::warn!(%error, "flow control objects could not be read; they are not obeyed any more");
                return;
            }
        };
        drop(server);
        tokio::select! {
            () = stopping.cancelled() => return,
            () = changed(changes) => {}
        }
    }
}

/// Waits until an object has changed, or all were replaced.
async fn changed([mut schemas, mut levels]: [Cursor; 2]) {
    let (mut some, mut others) = (Vec::new(), Vec::new());
    // An expired cursor means that everything has to be read again, as a change does.
    tokio::select! {
        _ = schemas.next_batch(&mut some, usize::MAX) => {}
        _ = levels.next_batch(&mut others, usize::MAX) => {}
    }
}

impl Core {
    /// Obeys what is stored, and follows what changes after that.
    pub(super) fn load_flow_control(&self) -> Result<[Cursor; 2], ApiError> {
        let resources = self.registry.now();
        let read = |plural: &str| all(&resources.builtin(GROUP, "v1", plural));
        let (schemas, schema_changes) = read("flowschemas")?;
        let (levels, level_changes) = read("prioritylevelconfigurations")?;
        self.flow.configure(&schemas, &levels);
        Ok([schema_changes, level_changes])
    }
}

fn all(served: &Arc<Served>) -> Result<(Vec<Value>, Cursor), ApiError> {
    let snapshot = served.collection.snapshot(At::Latest);
    let snapshot = snapshot.map_err(ApiError::internal)?;
    let records = snapshot.range("", None);
    let objects: Result<Vec<Value>, ApiError> = records.map(|r| served.revive(r)).collect();
    let cursor = served.collection.watch(snapshot.revision());
    Ok((objects?, cursor.map_err(ApiError::internal)?))
}
