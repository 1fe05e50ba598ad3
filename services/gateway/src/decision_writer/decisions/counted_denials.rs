//! The record of denials that have no record of their own.

use std::time::Instant;

use admission::record;
use evidence::RecordKind;

use super::audit_records::append_next;
use crate::annex::EMPTY;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::denial_counts::CountedDenials;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};

/// A job that records the denials counted in one stream. It is retried until the record is durable, except after
/// [`WriterError::Unrecordable`].
pub struct DenialsWork {
    writer: DecisionWriter,
    stream: String,
    counted: CountedDenials,
    since: Instant,
}

impl DenialsWork {
    pub fn new(writer: DecisionWriter, stream: String, counted: CountedDenials) -> Self {
        Self { writer, stream, counted, since: Instant::now() }
    }

    fn write(&self, batch: &mut Batch<'_>) -> Result<Option<()>, WriterError> {
        let is_open = match batch.stream(&self.stream) {
            Some(copy) => copy.state().is_some() && !copy.is_closed(),
            None => return Ok(None),
        };
        // No record follows a stream's closing record.
        let own = self.writer.unbound();
        let stream = if is_open { &self.stream } else { &own };
        if batch.stream(stream).is_none() {
            return Ok(None);
        }
        append_next(batch, stream, (RecordKind::Denials, EMPTY), |position| {
            record::denials(position, timestamp(self.counted.since), &self.counted.denied)
        })
        .map(Some)
    }
}

impl Work for DenialsWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone(), self.writer.unbound()]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_urgent(&self) -> bool {
        false
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        match self.write(batch) {
            Ok(Some(())) => JobStep::Decided,
            Ok(None) => JobStep::Needs(batch.missing()),
            Err(why) => JobStep::Impossible(why),
        }
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        match why {
            WriterError::Unrecordable(_) => None,
            _ => Some(self),
        }
    }
}
