//! The release of a reservation (V-14) whose call was never forwarded.

use std::sync::Arc;
use std::time::Instant;

use admission::decide;
use admission::rules::Rules;
use admission::session::ReservationId;

use super::close::end;
use super::copies::WorkingCopies;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};

/// A job that releases a reservation held while a judge or a person was asked.
pub struct RefundWork {
    rules: Arc<Rules>,
    stream: String,
    held: ReservationId,
    since: Instant,
}

impl RefundWork {
    pub fn new(rules: Arc<Rules>, stream: String, held: ReservationId) -> Self {
        Self { rules, stream, held, since: Instant::now() }
    }
}

impl Work for RefundWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone()]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        let Some(mut copies) = WorkingCopies::of_session(batch, &self.stream) else {
            return JobStep::Needs(batch.missing());
        };
        // The call was decided since: it has another reservation now, or none.
        if !copies.asking.iter().any(|asking| asking.held == self.held) {
            return JobStep::Nothing;
        }
        copies.asking.retain(|asking| asking.held != self.held);
        if let Some(session) = &mut copies.session {
            decide::refund(&self.rules, session, &mut copies.account, self.held);
        }
        copies.keep(batch);
        match end(batch, &self.stream) {
            Ok(_) => JobStep::Decided,
            Err(why) => JobStep::Impossible(why),
        }
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        match why {
            WriterError::Unrecordable(_) | WriterError::Stopping => None,
            _ => Some(self),
        }
    }
}
