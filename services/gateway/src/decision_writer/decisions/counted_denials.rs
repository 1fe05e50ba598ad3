//! The record of denials that have no record of their own.

use admission::record;
use evidence::RecordKind;

use super::audit_records::append_next;
use crate::annex::EMPTY;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::denial_counts::CountedDenials;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::transactions::{Batch, DecideError, Work, WorkItem, WorkStep};

/// Records the denials counted in one stream. Retried until the record is durable.
pub struct DenialsWork {
    writer: DecisionWriter,
    stream: String,
    counted: CountedDenials,
}

impl DenialsWork {
    pub fn new(writer: DecisionWriter, stream: String, counted: CountedDenials) -> Self {
        Self { writer, stream, counted }
    }
}

impl Work for DenialsWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone(), self.writer.own_stream()]
    }

    fn is_urgent(&self) -> bool {
        false
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let is_open = batch.stream(&self.stream)?.is_open();
        // No record follows a stream's closing record.
        let own = self.writer.own_stream();
        let stream = if is_open { &self.stream } else { &own };
        batch.stream(stream)?;
        append_next(batch, stream, RecordKind::Denials, EMPTY, |position| {
            record::denials(position, timestamp(self.counted.since), &self.counted.denied)
        })?;
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, _: &WriterError) -> Option<WorkItem> {
        Some(self)
    }
}
