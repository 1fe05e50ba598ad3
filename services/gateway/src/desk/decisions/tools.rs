//! Listed tools: new ones are pinned, others compared with their pins, and changes recorded.

use std::sync::Arc;
use std::time::Instant;

use admission::record::{self, Place, ToolEvent};
use admission::tool::{Description, Difference, Pin};
use bytes::Bytes;
use evidence::RecordKind;
use tokio::sync::oneshot;

use super::writing::{place, timestamp};
use crate::desk::Desk;
use crate::desk::error::DeskError;
use crate::desk::states::{Catalogue, State, catalogue_stream, tool_stream};
use crate::desk::writer::{Books, Job, NewRecord, Step, Work};
use crate::limits::{FOR_EVER, PINNED_TOOLS};

/// A job for the listed tools of a route, or for one tool that an operator command has approved.
pub struct ToolsWork {
    desk: Desk,
    route: String,
    /// Tool names with their listed descriptions; `None` if only an approval is to be recorded.
    tools: Arc<[(String, Option<Description>)]>,
    since: Instant,
    tell: Option<oneshot::Sender<Result<(), DeskError>>>,
}

/// The differences to record.
#[derive(Default)]
struct Found {
    changed: Vec<Difference>,
    approved: Vec<Difference>,
    is_new: bool,
}

impl ToolsWork {
    /// A job for a list of tools. `tell` is notified once the result is durable.
    pub fn listed(
        desk: Desk,
        route: &str,
        tools: impl IntoIterator<Item = (String, Description)>,
        tell: oneshot::Sender<Result<(), DeskError>>,
    ) -> Self {
        let tools = tools.into_iter().map(|(name, description)| (name, Some(description))).collect();
        Self { desk, route: route.to_owned(), tools, since: Instant::now(), tell: Some(tell) }
    }

    /// A job that records the approval of a tool.
    pub fn approved(desk: Desk, route: &str, tool: &str) -> Self {
        let tools = [(tool.to_owned(), None)].into();
        Self { desk, route: route.to_owned(), tools, since: Instant::now(), tell: None }
    }

    /// Applies the list to the working copies, and returns the differences. `None` if a stream is not loaded yet.
    fn find(&self, books: &mut Books<'_>) -> Result<Option<Found>, DeskError> {
        let pins = self.desk.rules_of(&self.route).tools.pins;
        let now = timestamp(books.now);
        let mut found = Found::default();
        for (name, description) in &*self.tools {
            let stream = tool_stream(&self.route, name);
            let Some(sheet) = books.sheet(&stream) else { return Ok(None) };
            let before = match sheet.state() {
                Some(State::Tool(pin)) => Some(pin.clone()),
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
            if before.is_none() && !self.counts(books)? {
                return Ok(None);
            }
            if before.as_ref() != Some(&pin) {
                found.is_new = true;
                let Some(sheet) = books.sheet(&stream) else { return Ok(None) };
                sheet.put(State::Tool(pin), false);
                sheet.keep(FOR_EVER);
            }
        }
        Ok(Some(found))
    }

    /// Counts a newly pinned tool. `false` if the count is not loaded yet.
    ///
    /// # Errors
    /// [`DeskError::Unrecordable`] if the route has [`PINNED_TOOLS`] already.
    fn counts(&self, books: &mut Books<'_>) -> Result<bool, DeskError> {
        let Some(sheet) = books.sheet(&catalogue_stream(&self.route)) else { return Ok(false) };
        let tools = match sheet.state() {
            Some(State::Catalogue(Catalogue { tools })) => *tools,
            _ => 0,
        };
        if tools >= PINNED_TOOLS {
            let why = format!("the servers of {} have listed more than {PINNED_TOOLS} tools", self.route);
            return Err(DeskError::Unrecordable(why));
        }
        sheet.put(State::Catalogue(Catalogue { tools: tools + 1 }), false);
        sheet.keep(FOR_EVER);
        Ok(true)
    }

    fn record(&self, books: &mut Books<'_>, event: ToolEvent, tools: &[Difference]) -> Result<(), DeskError> {
        if tools.is_empty() {
            return Ok(());
        }
        let (house, now) = (books.house, books.now);
        let stream = self.desk.unbound();
        let (key, seq) = place(books, stream)?;
        let place = Place { gateway: house.notary.issuer(), stream, seq, at: timestamp(now), key: &key };
        let signed = house.notary.audit_record(record::tools(&place, &self.route, event, tools), stream)?;
        if let Some(sheet) = books.sheet(stream) {
            let annex = Bytes::from_static(b"{}");
            sheet.record(stream, now, NewRecord { kind: RecordKind::Tools, signed, verdict: None, annex });
        }
        Ok(())
    }
}

impl Work for ToolsWork {
    fn streams(&self) -> Vec<String> {
        let tools = self.tools.iter().map(|(name, _)| tool_stream(&self.route, name));
        [self.desk.unbound().to_owned(), catalogue_stream(&self.route)].into_iter().chain(tools).collect()
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_urgent(&self) -> bool {
        self.tell.is_some()
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        let found = match self.find(books) {
            Ok(Some(found)) => found,
            Ok(None) => return Step::Needs(books.missing()),
            Err(why) => return Step::Impossible(why),
        };
        for Difference { tool, was, is } in &found.changed {
            let was = was.as_ref().map(ToString::to_string);
            tracing::warn!(
                route = self.route, tool, was, %is,
                "ALARM: a server describes a tool otherwise than when it was pinned; its calls are denied until it is approved"
            );
        }
        let recorded = self
            .record(books, ToolEvent::Changed, &found.changed)
            .and_then(|()| self.record(books, ToolEvent::Approved, &found.approved));
        match recorded {
            Err(why) => Step::Impossible(why),
            Ok(()) if found.is_new => Step::Decided,
            Ok(()) => Step::Nothing,
        }
    }

    fn committed(self: Box<Self>) {
        if let Some(tell) = self.tell {
            let _ = tell.send(Ok(()));
        }
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        if let Some(tell) = self.tell {
            let _ = tell.send(Err(why.clone()));
        }
        // An unrecorded approval keeps its flag in the pin, so the next call tries again.
        None
    }
}
