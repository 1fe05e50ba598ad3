//! The release of a reservation (V-14) whose call was never forwarded.

use std::sync::Arc;
use std::time::Instant;

use admission::decide;
use admission::rules::Rules;
use admission::session::ReservationId;

use super::close::end;
use super::copies::Copies;
use crate::desk::error::DeskError;
use crate::desk::writer::{Books, Job, Step, Work};

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

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        let Some(mut copies) = Copies::of_session(books, &self.stream) else {
            return Step::Needs(books.missing());
        };
        // The call was decided since: it has another reservation now, or none.
        if !copies.asking.iter().any(|asking| asking.held == self.held) {
            return Step::Nothing;
        }
        copies.asking.retain(|asking| asking.held != self.held);
        if let Some(session) = &mut copies.session {
            decide::refund(&self.rules, session, &mut copies.account, self.held);
        }
        copies.keep(books);
        match end(books, &self.stream) {
            Ok(_) => Step::Decided,
            Err(why) => Step::Impossible(why),
        }
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        match why {
            DeskError::Unrecordable(_) | DeskError::Stopping => None,
            _ => Some(self),
        }
    }
}
