//! The highest version of an AgentROA registry that was in force. It is durable, with the digest of its content, before it
//! is in force: so replicas and later runs neither go back to an earlier version nor accept another document with its number
//! . Each decision compares the version.

use std::cmp::Ordering;

use async_trait::async_trait;
use roa::registry::{Registry, RegistryVersion};
use roa::text::Text;
use tokio::sync::oneshot;

use crate::authority::{PositionError, RegistryPositions};
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::{HighestRegistry, StreamState, registry_stream};
use crate::decision_writer::transactions::{Batch, DecideError, StreamNotLoaded, Work, WorkItem, WorkStep};
use crate::limits::{FOR_EVER, SETTLE_TIME};

/// Returns the highest version of a registry; `None` if no version of it was in force.
///
/// # Errors
/// [`StreamNotLoaded`].
pub fn highest_version(
    batch: &mut Batch<'_>,
    registry_id: &Text,
) -> Result<Option<RegistryVersion>, StreamNotLoaded> {
    Ok(read(batch, registry_id)?.map(HighestRegistry::version))
}

fn read(batch: &mut Batch<'_>, registry_id: &Text) -> Result<Option<HighestRegistry>, StreamNotLoaded> {
    Ok(match batch.stream(&registry_stream(registry_id))?.state() {
        Some(StreamState::Registry(stored)) => Some(*stored),
        _ => None,
    })
}

/// Compares a version with the stored one. Returns whether it is to be stored.
fn is_new(stored: Option<HighestRegistry>, found: HighestRegistry) -> Result<bool, PositionError> {
    let Some(stored) = stored else { return Ok(true) };
    match stored.version().cmp(&found.version()) {
        Ordering::Less => Ok(true),
        Ordering::Greater => {
            Err(PositionError::Rollback { highest: stored.version(), found: found.version() })
        }
        Ordering::Equal if stored.content != found.content => {
            Err(PositionError::OtherContent(found.version()))
        }
        Ordering::Equal => Ok(false),
    }
}

/// Raises the highest version of a registry.
struct RegistryPositionWork {
    registry_id: Text,
    found: HighestRegistry,
    result: Result<(), PositionError>,
    reply: oneshot::Sender<Result<(), PositionError>>,
}

impl Work for RegistryPositionWork {
    fn streams(&self) -> Vec<String> {
        vec![registry_stream(&self.registry_id)]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let is_new = is_new(read(batch, &self.registry_id)?, self.found);
        self.result = is_new.clone().map(drop);
        if is_new != Ok(true) {
            return Ok(WorkStep::Unchanged);
        }
        let copy = batch.stream(&registry_stream(&self.registry_id))?;
        copy.set_state(StreamState::Registry(self.found));
        copy.set_due(FOR_EVER);
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        let _ = self.reply.send(self.result);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        let _ = self.reply.send(Err(PositionError::NotStored(why.to_string())));
        None
    }
}

#[async_trait]
impl RegistryPositions for DecisionWriter {
    async fn raise(&self, registry: &Registry) -> Result<(), PositionError> {
        let (reply, answer) = oneshot::channel();
        let (registry_id, found) = (registry.document().registry_id.clone(), registry.into());
        self.submit(Box::new(RegistryPositionWork { registry_id, found, result: Ok(()), reply }));
        match tokio::time::timeout(SETTLE_TIME, answer).await {
            Ok(Ok(raised)) => raised,
            _ => Err(PositionError::NotStored("the database does not answer".to_owned())),
        }
    }
}
