//! The release of a reservation (V-14) whose call was never forwarded.

use std::sync::Arc;

use admission::decide;
use admission::rules::Rules;
use admission::session::ReservationId;

use super::close::close_if_drained;
use super::session_with_account::SessionWithAccount;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::transactions::{Batch, DecideError, Work, WorkItem, WorkStep};

/// Releases a reservation that was held while a judge or a person was asked.
pub struct RefundWork {
    rules: Arc<Rules>,
    stream: String,
    held: ReservationId,
}

impl RefundWork {
    pub fn new(rules: Arc<Rules>, stream: String, held: ReservationId) -> Self {
        Self { rules, stream, held }
    }
}

impl Work for RefundWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone()]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let mut working = SessionWithAccount::of_session(batch, &self.stream)?;
        // The call was decided since: it has another reservation now, or none.
        if !working.asking.iter().any(|asking| asking.held == self.held) {
            return Ok(WorkStep::Unchanged);
        }
        working.asking.retain(|asking| asking.held != self.held);
        if let Some(session) = &mut working.session {
            decide::refund(&self.rules, session, &mut working.account, self.held);
        }
        working.write_to(batch);
        close_if_drained(batch, &self.stream)?;
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, _: &WriterError) -> Option<WorkItem> {
        Some(self)
    }
}
