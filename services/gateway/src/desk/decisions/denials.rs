//! The record of denials that have no record of their own.

use std::time::Instant;

use admission::record::{self, Place};
use bytes::Bytes;
use evidence::RecordKind;

use super::writing::{place, timestamp};
use crate::desk::Desk;
use crate::desk::denials::Counted;
use crate::desk::error::DeskError;
use crate::desk::writer::{Books, Job, NewRecord, Step, Work};

/// A job that records the denials counted in one stream. It is retried until the record is durable, except after
/// [`DeskError::Unrecordable`].
pub struct DenialsWork {
    desk: Desk,
    stream: String,
    counted: Counted,
    since: Instant,
}

impl DenialsWork {
    pub fn new(desk: Desk, stream: String, counted: Counted) -> Self {
        Self { desk, stream, counted, since: Instant::now() }
    }

    fn write(&self, books: &mut Books<'_>) -> Result<Option<()>, DeskError> {
        let is_open = match books.sheet(&self.stream) {
            Some(sheet) => sheet.state().is_some() && !sheet.is_closed(),
            None => return Ok(None),
        };
        // No record follows a stream's closing record.
        let stream = if is_open { self.stream.as_str() } else { self.desk.unbound() };
        if books.sheet(stream).is_none() {
            return Ok(None);
        }
        let (house, now) = (books.house, books.now);
        let (key, seq) = place(books, stream)?;
        let place = Place { gateway: house.notary.issuer(), stream, seq, at: timestamp(now), key: &key };
        let record = record::denials(&place, timestamp(self.counted.since), &self.counted.denied);
        let signed = house.notary.audit_record(record, stream)?;
        if let Some(sheet) = books.sheet(stream) {
            let annex = Bytes::from_static(b"{}");
            sheet.record(stream, now, NewRecord { kind: RecordKind::Denials, signed, verdict: None, annex });
        }
        Ok(Some(()))
    }
}

impl Work for DenialsWork {
    fn streams(&self) -> Vec<String> {
        vec![self.stream.clone(), self.desk.unbound().to_owned()]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_urgent(&self) -> bool {
        false
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        match self.write(books) {
            Ok(Some(())) => Step::Decided,
            Ok(None) => Step::Needs(books.missing()),
            Err(why) => Step::Impossible(why),
        }
    }

    fn committed(self: Box<Self>) {}

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        match why {
            DeskError::Unrecordable(_) => None,
            _ => Some(self),
        }
    }
}
