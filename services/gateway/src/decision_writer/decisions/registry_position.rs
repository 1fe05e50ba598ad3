//! The highest version of a registry that was in force: its position and the digest of its content are durable before it is
//! in force, so that replicas and later runs neither go back nor accept another document with its number. Each
//! decision compares the position.

use std::cmp::Ordering;
use std::time::Instant;

use async_trait::async_trait;
use roa::registry::{Registry, RegistryVersion};
use roa::text::Text;
use tokio::sync::oneshot;

use crate::authority::{PositionError, RegistryPositions};
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::{HighestRegistry, StreamState, registry_stream};
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};
use crate::limits::{FOR_EVER, SETTLE_TIME};

/// Returns the highest position of a registry. Outer `None`: the stream is not loaded yet; inner `None`: no version of it
/// was in force.
pub fn highest(batch: &mut Batch<'_>, registry_id: &Text) -> Option<Option<RegistryVersion>> {
    Some(stored(batch, registry_id)?.map(HighestRegistry::version))
}

fn stored(batch: &mut Batch<'_>, registry_id: &Text) -> Option<Option<HighestRegistry>> {
    Some(match batch.stream(&registry_stream(registry_id))?.state() {
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

/// A job that raises the position of a registry.
struct RegistryPositionWork {
    registry_id: Text,
    found: HighestRegistry,
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
        let Some(stored) = stored(batch, &self.registry_id) else { return JobStep::Needs(batch.missing()) };
        let is_new = is_new(stored, self.found);
        self.result = is_new.clone().map(drop);
        if is_new != Ok(true) {
            return JobStep::Nothing;
        }
        if let Some(copy) = batch.stream(&registry_stream(&self.registry_id)) {
            copy.put(StreamState::Registry(self.found), false);
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
    async fn raise(&self, registry: &Registry) -> Result<(), PositionError> {
        let (reply, answer) = oneshot::channel();
        let (registry_id, since) = (registry.document().registry_id.clone(), Instant::now());
        let found = registry.into();
        self.hand_in(Box::new(RegistryPositionWork { registry_id, found, since, result: Ok(()), reply }));
        match tokio::time::timeout(SETTLE_TIME, answer).await {
            Ok(Ok(raised)) => raised,
            _ => Err(PositionError::NotStored("the database does not answer".to_owned())),
        }
    }
}
