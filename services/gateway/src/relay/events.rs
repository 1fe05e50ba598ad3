//! Server-sent events, cut from a stream of bytes and put together again without changing one.
//!
//! What is written out is what came in, whatever its line ends (CR, LF, CRLF) and wherever it was cut into chunks. A block
//! of comments alone goes on line by line: it keeps connections alive.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::limits::MAX_EVENT_BYTES;
use crate::memory::{ANSWERS, Exhausted, Share};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event, or something between events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    raw: Bytes,
    /// Where the lines with its data are, without their line ends.
    has_data: bool,
}

/// An event that cannot be kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EventError {
    /// It is longer than any should be.
    #[error("an event is longer than {MAX_EVENT_BYTES} bytes")]
    Longest,
    /// There is no room for it now.
    #[error(transparent)]
    NoRoom(#[from] Exhausted),
}

/// Cuts a stream into events.
#[derive(Debug)]
pub struct Splitter {
    pending: BytesMut,
    share: Share,
    /// Up to where `pending` has been looked at: the start of a line.
    line: usize,
    /// From where on that line has been looked at.
    at: usize,
    has_data: bool,
    has_fields: bool,
    /// The last byte was a CR that ended a line: a LF now still belongs to it.
    after_cr: bool,
    begun: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self {
            pending: BytesMut::new(),
            share: ANSWERS.share(None),
            line: 0,
            at: 0,
            has_data: false,
            has_fields: false,
            after_cr: false,
            begun: false,
        }
    }
}

impl Splitter {
    /// Takes a chunk; gives what is complete.
    pub fn push(&mut self, chunk: Bytes) -> Result<Vec<Event>, EventError> {
        let mut events = Vec::new();
        self.share.resize(self.pending.len() + chunk.len())?;
        self.pending.extend_from_slice(&chunk);
        while let Some(ahead) = self.pending.get(self.at..).filter(|ahead| !ahead.is_empty()) {
            if std::mem::take(&mut self.after_cr) && ahead.starts_with(b"\n") {
                self.at += 1;
                self.second_half_of_line_end(&mut events);
                continue;
            }
            let Some(length) = ahead.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.at = self.pending.len();
                break;
            };
            let end = ahead.get(length..).unwrap_or_default();
            let (pair, lone_cr) = (end.starts_with(b"\r\n"), end == b"\r");
            let line = self.line..self.at + length;
            self.at = line.end + if pair { 2 } else { 1 };
            self.after_cr = lone_cr;
            self.end_of_line(line, &mut events);
        }
        // What is complete holds shares of its own.
        self.share.resize(self.pending.len())?;
        match self.pending.len() > MAX_EVENT_BYTES {
            true => Err(EventError::Longest),
            false => Ok(events),
        }
    }

    /// The LF of a CRLF whose CR has ended its line already.
    fn second_half_of_line_end(&mut self, events: &mut Vec<Event>) {
        self.line = self.at;
        if self.at == 1 {
            self.cut(events);
        }
    }

    fn end_of_line(&mut self, line: std::ops::Range<usize>, events: &mut Vec<Event>) {
        self.line = self.at;
        let text = self.pending.get(line).unwrap_or_default();
        let text = if self.begun { text } else { text.strip_prefix(BOM).unwrap_or(text) };
        self.begun = true;
        match text {
            [] => self.cut(events),
            [b':', ..] if !self.has_fields => self.cut(events),
            _ => {
                self.has_fields = true;
                self.has_data |= value(text, b"data").is_some();
            }
        }
    }

    fn cut(&mut self, events: &mut Vec<Event>) {
        let raw = ANSWERS.share(None).attach(self.pending.split_to(self.at).freeze());
        events.push(Event { raw, has_data: std::mem::take(&mut self.has_data) });
        (self.line, self.at, self.has_fields) = (0, 0, false);
    }
}

impl Event {
    /// As it came.
    pub fn into_raw(self) -> Bytes {
        self.raw
    }

    /// Its data, if there is any: a priming event has an empty one, which is none.
    pub fn data(&self) -> Option<Bytes> {
        if !self.has_data {
            return None;
        }
        let mut lines = self.lines().filter_map(|(line, _)| value(line, b"data"));
        let mut data = lines.next()?.to_vec();
        for line in lines {
            data.push(b'\n');
            data.extend_from_slice(line);
        }
        (!data.is_empty()).then(|| data.into())
    }

    /// The same event with other data.
    pub fn with_data(&self, data: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(self.raw.len() + data.len());
        let mut written = false;
        for (line, end) in self.lines() {
            if value(line, b"data").is_none() {
                out.extend_from_slice(line);
                out.extend_from_slice(joinable(end));
            } else if !std::mem::replace(&mut written, true) {
                write_data(&mut out, data, joinable(end));
            }
        }
        out.into()
    }

    /// What is left of the event if its data does not go on: its id, so that resuming is not thrown back.
    pub fn without_data(&self) -> Option<Bytes> {
        let has_id = self.lines().any(|(line, _)| value(line, b"id").is_some());
        has_id.then(|| {
            let kept = self.lines().filter(|(line, _)| {
                line.is_empty() || value(line, b"id").is_some() || value(line, b"retry").is_some()
            });
            kept.flat_map(|(line, end)| [line, joinable(end)]).collect::<Vec<_>>().concat().into()
        })
    }

    /// Its lines, each with its end; a byte order mark before the first is taken off.
    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = self.raw.strip_prefix(BOM).unwrap_or(&self.raw);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let length = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
            let (line, after) = rest.split_at(length);
            let end = if after.starts_with(b"\r\n") { 2 } else { after.len().min(1) };
            let (end, after) = after.split_at(end);
            rest = after;
            Some((line, end))
        })
    }
}

/// A CR would become one line end with the LF of an empty line that was not behind it before.
fn joinable(end: &[u8]) -> &[u8] {
    if end == b"\r" { b"\n" } else { end }
}

/// An event of the gateway's own.
pub fn message(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 32);
    out.extend_from_slice(b"event: message\n");
    write_data(&mut out, text, b"\n");
    out.push(b'\n');
    out.into()
}

/// A JSON text has line ends only where it could have blanks: each line becomes a line of data.
fn write_data(out: &mut Vec<u8>, data: &[u8], end: &[u8]) {
    let lines = data.split(|byte| matches!(byte, b'\r' | b'\n'));
    for line in lines {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.extend_from_slice(end);
    }
}

/// The value of a field, if the line is of that field.
fn value<'a>(line: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(field)? {
        [] => Some(b""),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}
