//! Pinned tools: comparing a list of tools with the pins, as `tools` asks before a client gets the list.

use admission::tool::{Description, Pin};
use evidence::{StoreError, StoredStream};
use tokio::sync::oneshot;

use super::DecisionWriter;
use super::clock::timestamp;
use super::committed_stream::CommittedStream;
use super::decisions::ToolsWork;
use super::error::WriterError;
use super::states::tool_stream;

impl DecisionWriter {
    /// Pins the tools that are listed for the first time, and records changed descriptions. Returns whether there was
    /// anything to store. Once this returns `Ok`, the result is durable, and calls are decided by it.
    pub(crate) async fn tools_listed(
        &self,
        route: &str,
        listed: Vec<(String, Description)>,
    ) -> Result<bool, WriterError> {
        if self.is_known(route, &listed).await? {
            return Ok(false);
        }
        let (reply, answer) = oneshot::channel();
        self.submit(Box::new(ToolsWork::listed(self.clone(), route, listed, reply)));
        match tokio::time::timeout(self.inner.context.settings.decide_time, answer).await {
            Ok(Ok(noted)) => noted.map(|()| true),
            Ok(Err(_)) => Err(WriterError::Stopping),
            Err(_) => Err(WriterError::Unavailable("the list could not be noted in time".to_owned())),
        }
    }

    /// Returns whether a list would change no pin, like most lists.
    async fn is_known(&self, route: &str, listed: &[(String, Description)]) -> Result<bool, WriterError> {
        let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
        let pins = self.rules_of(route).tools.pins;
        let now = timestamp(self.inner.context.clock.milliseconds());
        let stored = self.pins(route, &names).await?;
        let would_stay = |(stored, (_, description)): (Option<Pin>, &(String, Description))| {
            stored.is_some_and(|pin| {
                let mut after = pin.clone();
                let changed = after.listed(description.clone(), pins, now).is_some();
                !changed && after == pin && !pin.approval_unrecorded
            })
        };
        Ok(stored.into_iter().zip(listed).all(would_stay))
    }

    async fn pins(&self, route: &str, tools: &[&str]) -> Result<Vec<Option<Pin>>, StoreError> {
        let streams: Vec<String> = tools.iter().map(|tool| tool_stream(route, tool)).collect();
        let names: Vec<&str> = streams.iter().map(String::as_str).collect();
        let stored = self.inner.store.streams(&names).await?;
        let pin = |(name, stored): (&String, Option<StoredStream>)| {
            Ok(CommittedStream::read(name, stored.as_ref())?.pin().cloned())
        };
        streams.iter().zip(stored).map(pin).collect()
    }
}
