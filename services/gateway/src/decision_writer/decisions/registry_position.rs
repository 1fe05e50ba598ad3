//! The highest position of a registry that was in force: durable before a version is in force, and compared in each
//! decision, so that replicas and later runs do not go back.

use std::time::Instant;

use async_trait::async_trait;
use roa::registry::RegistryVersion;
use roa::text::Text;
use tokio::sync::oneshot;

use crate::authority::{PositionError, RegistryPositions};
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::{StreamState, registry_stream};
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};
use crate::limits::{FOR_EVER, SETTLE_TIME};

/// Returns the highest position of a registry. Outer `None`: the stream is not loaded yet; inner `None`: no version of it
/// was in force.
pub fn highest(batch: &mut Batch<'_>, registry_id: &Text) -> Option<Option<RegistryVersion>> {
    Some(match batch.stream(&registry_stream(registry_id))?.state() {
        Some(StreamState::Registry(stored)) => Some((*stored).into()),
        _ => None,
    })
}

/// A job that raises the position of a registry.
struct RegistryPositionWork {
    registry_id: Text,
    version: RegistryVersion,
    since: Instant,
    result: Result<(), PositionError>,
    reply: oneshot::Sender<Result<(), PositionError>>,
}

impl Work for RegistryPositionWork {
    fn streams(&self) -> Vec<String> {
        vec![registry_stream(&self.registry_id)]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        let Some(stored) = highest(batch, &self.registry_id) else { return JobStep::Needs(batch.missing()) };
        let found = self.version;
        self.result = Ok(());
        match stored {
            Some(highest) if highest == found => return JobStep::Nothing,
            Some(highest) if highest > found => {
                self.result = Err(PositionError::Rollback { highest, found });
                return JobStep::Nothing;
            }
            _ => {}
        }
        if let Some(copy) = batch.stream(&registry_stream(&self.registry_id)) {
            copy.put(StreamState::Registry(found.into()), false);
            copy.keep(FOR_EVER);
        }
        JobStep::Decided
    }

    fn committed(self: Box<Self>) {
        let _ = self.reply.send(self.result);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        let _ = self.reply.send(Err(PositionError::NotStored(why.to_string())));
        None
    }
}

#[async_trait]
impl RegistryPositions for DecisionWriter {
    async fn raise(&self, registry_id: &Text, version: RegistryVersion) -> Result<(), PositionError> {
        let (reply, answer) = oneshot::channel();
        let (registry_id, since) = (registry_id.clone(), Instant::now());
        self.hand_in(Box::new(RegistryPositionWork { registry_id, version, since, result: Ok(()), reply }));
        match tokio::time::timeout(SETTLE_TIME, answer).await {
            Ok(Ok(raised)) => raised,
            _ => Err(PositionError::NotStored("the database does not answer".to_owned())),
        }
    }
}
