//! Listed tools: new ones are pinned, others compared with their pins, and changes recorded.

use admission::record;
use admission::tool::{Description, Difference, Pin, ToolPins};
use evidence::RecordKind;
use tokio::sync::oneshot;
use vap::audit::ToolEvent;

use super::audit_records::append_next;
use crate::annex::EMPTY;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::{StreamState, ToolCount, catalogue_stream, tool_stream};
use crate::decision_writer::transactions::{Batch, DecideError, Work, WorkItem, WorkStep};
use crate::limits::{FOR_EVER, PINNED_TOOLS};

/// Pins the listed tools of a route and records changes, or records the approval of one tool by an operator command.
pub struct ToolsWork {
    writer: DecisionWriter,
    route: String,
    tools: Vec<ToolToCompare>,
    reply: Option<oneshot::Sender<Result<(), WriterError>>>,
}

/// A tool to compare with its pin.
struct ToolToCompare {
    name: String,
    /// The listed description; `None` if only an approval is to be recorded.
    listed: Option<Description>,
}

/// The differences to record.
#[derive(Default)]
struct ToolDifferences {
    changed: Vec<Difference>,
    approved: Vec<Difference>,
    /// `true` if a pin is to be stored.
    is_pin_changed: bool,
}

impl ToolsWork {
    /// The work item for a list of tools. `reply` is notified once the result is durable.
    pub fn listed(
        writer: DecisionWriter,
        route: &str,
        tools: impl IntoIterator<Item = (String, Description)>,
        reply: oneshot::Sender<Result<(), WriterError>>,
    ) -> Self {
        let tools =
            tools.into_iter().map(|(name, description)| ToolToCompare { name, listed: Some(description) });
        Self { writer, route: route.to_owned(), tools: tools.collect(), reply: Some(reply) }
    }

    /// The work item that records the approval of a tool.
    pub fn approved(writer: DecisionWriter, route: &str, tool: &str) -> Self {
        let tools = vec![ToolToCompare { name: tool.to_owned(), listed: None }];
        Self { writer, route: route.to_owned(), tools, reply: None }
    }

    /// Compares the tools with their pins, updates the pins, and returns the differences.
    fn update_pins(&self, batch: &mut Batch<'_>) -> Result<ToolDifferences, DecideError> {
        let pins = self.writer.rules_of(&self.route).tools.pins;
        let mut differences = ToolDifferences::default();
        for tool in &self.tools {
            self.update_pin(batch, pins, tool, &mut differences)?;
        }
        Ok(differences)
    }

    fn update_pin(
        &self,
        batch: &mut Batch<'_>,
        pins: ToolPins,
        tool: &ToolToCompare,
        differences: &mut ToolDifferences,
    ) -> Result<(), DecideError> {
        let now = timestamp(batch.now);
        let stream = tool_stream(&self.route, &tool.name);
        let before = match batch.stream(&stream)?.state() {
            Some(StreamState::Tool(pin)) => Some(pin.clone()),
            _ => None,
        };
        let mut pin = match (&before, &tool.listed) {
            (Some(pin), _) => pin.clone(),
            (None, Some(listed)) => Box::new(Pin::first(&self.route, &tool.name, listed.clone(), pins, now)),
            (None, None) => return Ok(()),
        };
        if let Some(listed) = &tool.listed {
            differences.changed.extend(pin.listed(listed.clone(), pins, now));
        }
        if std::mem::take(&mut pin.approval_unrecorded) {
            let is = pin.pinned.as_ref().map(|pinned| pinned.description.digest.clone());
            differences.approved.extend(is.map(|is| Difference { tool: tool.name.clone(), was: None, is }));
        }
        if before.is_none() {
            self.count_pinned_tool(batch)?;
        }
        if before.as_ref() != Some(&pin) {
            differences.is_pin_changed = true;
            let copy = batch.stream(&stream)?;
            copy.set_state(StreamState::Tool(pin));
            copy.set_due(FOR_EVER);
        }
        Ok(())
    }

    /// Counts a newly pinned tool.
    ///
    /// # Errors
    /// [`WriterError::TooManyTools`] if the route has [`PINNED_TOOLS`] already.
    fn count_pinned_tool(&self, batch: &mut Batch<'_>) -> Result<(), DecideError> {
        let copy = batch.stream(&catalogue_stream(&self.route))?;
        let tools = match copy.state() {
            Some(StreamState::Catalogue(ToolCount { tools })) => *tools,
            _ => 0,
        };
        if tools >= PINNED_TOOLS {
            return Err(WriterError::TooManyTools { route: self.route.clone() }.into());
        }
        copy.set_state(StreamState::Catalogue(ToolCount { tools: tools + 1 }));
        copy.set_due(FOR_EVER);
        Ok(())
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
        append_next(batch, &self.writer.own_stream(), RecordKind::Tools, EMPTY, |position| {
            record::tools(position, &self.route, event, tools)
        })
    }
}

impl Work for ToolsWork {
    fn streams(&self) -> Vec<String> {
        let tools = self.tools.iter().map(|tool| tool_stream(&self.route, &tool.name));
        [self.writer.own_stream(), catalogue_stream(&self.route)].into_iter().chain(tools).collect()
    }

    fn is_urgent(&self) -> bool {
        self.reply.is_some()
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let ToolDifferences { changed, approved, is_pin_changed } = self.update_pins(batch)?;
        for Difference { tool, was, is } in &changed {
            let was = was.as_ref().map(ToString::to_string);
            tracing::warn!(
                route = self.route, tool, was, %is,
                "ALARM: a server's description of a tool differs from the pinned one; its calls are denied until it is approved"
            );
        }
        self.record(batch, ToolEvent::Changed, &changed)?;
        self.record(batch, ToolEvent::Approved, &approved)?;
        Ok(if is_pin_changed { WorkStep::Decided } else { WorkStep::Unchanged })
    }

    fn committed(self: Box<Self>) {
        if let Some(reply) = self.reply {
            let _ = reply.send(Ok(()));
        }
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        if let Some(reply) = self.reply {
            let _ = reply.send(Err(why.clone()));
        }
        // An unrecorded approval keeps its flag in the pin, so the next call tries again.
        None
    }
}
