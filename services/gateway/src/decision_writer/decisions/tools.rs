//! Listed tools: new ones are pinned, others compared with their pins, and changes recorded.

use std::sync::Arc;
use std::time::Instant;

use admission::record;
use admission::tool::{Description, Difference, Pin};
use evidence::RecordKind;
use tokio::sync::oneshot;
use vap::audit::ToolEvent;

use super::audit_records::append_next;
use crate::annex::EMPTY;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::{StreamState, ToolCount, catalogue_stream, tool_stream};
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};
use crate::limits::{FOR_EVER, PINNED_TOOLS};

/// A job for the listed tools of a route, or for one tool that an operator command has approved.
pub struct ToolsWork {
    writer: DecisionWriter,
    route: String,
    /// Tool names with their listed descriptions; `None` if only an approval is to be recorded.
    tools: Arc<[(String, Option<Description>)]>,
    since: Instant,
    reply: Option<oneshot::Sender<Result<(), WriterError>>>,
}

/// The differences to record.
#[derive(Default)]
struct ToolDifferences {
    changed: Vec<Difference>,
    approved: Vec<Difference>,
    is_new: bool,
}

impl ToolsWork {
    /// A job for a list of tools. `reply` is notified once the result is durable.
    pub fn listed(
        writer: DecisionWriter,
        route: &str,
        tools: impl IntoIterator<Item = (String, Description)>,
        reply: oneshot::Sender<Result<(), WriterError>>,
    ) -> Self {
        let tools = tools.into_iter().map(|(name, description)| (name, Some(description))).collect();
        Self { writer, route: route.to_owned(), tools, since: Instant::now(), reply: Some(reply) }
    }

    /// A job that records the approval of a tool.
    pub fn approved(writer: DecisionWriter, route: &str, tool: &str) -> Self {
        let tools = [(tool.to_owned(), None)].into();
        Self { writer, route: route.to_owned(), tools, since: Instant::now(), reply: None }
    }

    /// Applies the list to the working copies, and returns the differences. `None` if a stream is not loaded yet.
    fn find(&self, batch: &mut Batch<'_>) -> Result<Option<ToolDifferences>, WriterError> {
        let pins = self.writer.rules_of(&self.route).tools.pins;
        let now = timestamp(batch.now);
        let mut found = ToolDifferences::default();
        for (name, description) in &*self.tools {
            let stream = tool_stream(&self.route, name);
            let Some(copy) = batch.stream(&stream) else { return Ok(None) };
            let before = match copy.state() {
                Some(StreamState::Tool(pin)) => Some(pin.clone()),
                _ => None,
            };
            let mut pin = match (&before, description) {
                (Some(pin), _) => pin.clone(),
                (None, Some(description)) => {
                    let description = description.clone();
                    Box::new(Pin::first(&self.route, name, description, pins, now))
                }
                (None, None) => continue,
            };
            if let Some(description) = description {
                found.changed.extend(pin.listed(description.clone(), pins, now));
            }
            if std::mem::take(&mut pin.approval_unrecorded) {
                let is = pin.pinned.as_ref().map(|pinned| pinned.description.digest.clone());
                found.approved.extend(is.map(|is| Difference { tool: name.clone(), was: None, is }));
            }
            if before.is_none() && !self.counts(batch)? {
                return Ok(None);
            }
            if before.as_ref() != Some(&pin) {
                found.is_new = true;
                let Some(copy) = batch.stream(&stream) else { return Ok(None) };
                copy.put(StreamState::Tool(pin), false);
                copy.keep(FOR_EVER);
            }
        }
        Ok(Some(found))
    }

    /// Counts a newly pinned tool. `false` if the count is not loaded yet.
    ///
    /// # Errors
    /// [`WriterError::Unrecordable`] if the route has [`PINNED_TOOLS`] already.
    fn counts(&self, batch: &mut Batch<'_>) -> Result<bool, WriterError> {
        let Some(copy) = batch.stream(&catalogue_stream(&self.route)) else { return Ok(false) };
        let tools = match copy.state() {
            Some(StreamState::Catalogue(ToolCount { tools })) => *tools,
            _ => 0,
        };
        if tools >= PINNED_TOOLS {
            let why = format!("the servers of {} have listed more than {PINNED_TOOLS} tools", self.route);
            return Err(WriterError::Unrecordable(why));
        }
        copy.put(StreamState::Catalogue(ToolCount { tools: tools + 1 }), false);
        copy.keep(FOR_EVER);
        Ok(true)
    }

    fn record(
        &self,
        batch: &mut Batch<'_>,
        event: ToolEvent,
        tools: &[Difference],
    ) -> Result<(), WriterError> {
        if tools.is_empty() {
            return Ok(());
        }
        append_next(batch, &self.writer.unbound(), (RecordKind::Tools, EMPTY), |position| {
            record::tools(position, &self.route, event, tools)
        })
    }
}

impl Work for ToolsWork {
    fn streams(&self) -> Vec<String> {
        let tools = self.tools.iter().map(|(name, _)| tool_stream(&self.route, name));
        [self.writer.unbound(), catalogue_stream(&self.route)].into_iter().chain(tools).collect()
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_urgent(&self) -> bool {
        self.reply.is_some()
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        let found = match self.find(batch) {
            Ok(Some(found)) => found,
            Ok(None) => return JobStep::Needs(batch.missing()),
            Err(why) => return JobStep::Impossible(why),
        };
        for Difference { tool, was, is } in &found.changed {
            let was = was.as_ref().map(ToString::to_string);
            tracing::warn!(
                route = self.route, tool, was, %is,
                "ALARM: a server's description of a tool differs from the pinned one; its calls are denied until it is approved"
            );
        }
        let recorded = self
            .record(batch, ToolEvent::Changed, &found.changed)
            .and_then(|()| self.record(batch, ToolEvent::Approved, &found.approved));
        match recorded {
            Err(why) => JobStep::Impossible(why),
            Ok(()) if found.is_new => JobStep::Decided,
            Ok(()) => JobStep::Nothing,
        }
    }

    fn committed(self: Box<Self>) {
        if let Some(reply) = self.reply {
            let _ = reply.send(Ok(()));
        }
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        if let Some(reply) = self.reply {
            let _ = reply.send(Err(why.clone()));
        }
        // An unrecorded approval keeps its flag in the pin, so the next call tries again.
        None
    }
}
