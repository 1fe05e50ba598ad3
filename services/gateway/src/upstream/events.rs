//! Server-sent events: cut from a byte stream, and written without changing a byte.
//!
//! The output equals the input, whatever its line ends (CR, LF, CRLF) and its chunk boundaries are. Comments between
//! events are passed on line by line, because they keep connections alive.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use thiserror::Error;

use crate::limits::MAX_EVENT_BYTES;
use crate::memory::{ANSWERS, Exhausted, Share};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event, or a comment between events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    raw: Bytes,
    /// True if the event has a `data` field.
    has_data: bool,
}

/// Reason why an event cannot be buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EventError {
    /// The event is longer than [`MAX_EVENT_BYTES`].
    #[error("an event is longer than {MAX_EVENT_BYTES} bytes")]
    Longest,
    /// The memory budget for answers is used up.
    #[error(transparent)]
    NoRoom(#[from] Exhausted),
}

/// A splitter of a byte stream into events.
#[derive(Debug)]
pub struct Splitter {
    pending: BytesMut,
    share: Share,
    /// Start of the current line in `pending`; all before it was scanned.
    line: usize,
    /// Position in `pending` up to which the current line was scanned.
    at: usize,
    has_data: bool,
    has_fields: bool,
    /// The last byte was a CR that ended a line; a following LF belongs to it.
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
    /// Adds a chunk, and returns the events that are complete.
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
        // Complete events hold their own shares of the memory budget.
        self.share.resize(self.pending.len())?;
        match self.pending.len() > MAX_EVENT_BYTES {
            true => Err(EventError::Longest),
            false => Ok(events),
        }
    }

    /// Handles the LF of a CRLF whose CR already ended the line.
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
    /// The original bytes of the event.
    pub fn into_raw(self) -> Bytes {
        self.raw
    }

    /// The data of the event; `None` if it is absent or empty, as in a priming event.
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

    /// The id of the event, which may be empty; the last one of several. `None` without one.
    pub fn id(&self) -> Option<&[u8]> {
        self.lines().filter_map(|(line, _)| value(line, b"id")).last()
    }

    /// The pause after which a client is to ask for the stream again once it has ended; `None` if the event names none.
    pub fn retry(&self) -> Option<Duration> {
        let digits = self.lines().filter_map(|(line, _)| value(line, b"retry")).last()?;
        std::str::from_utf8(digits).ok()?.parse().ok().map(Duration::from_millis)
    }

    /// The event with other data.
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

    /// The event without its data, or `None` if it has no id. The id is kept, so that the client still resumes from the
    /// right position.
    pub fn without_data(&self) -> Option<Bytes> {
        self.id().is_some().then(|| {
            let kept = self.lines().filter(|(line, _)| {
                line.is_empty() || value(line, b"id").is_some() || value(line, b"retry").is_some()
            });
            kept.flat_map(|(line, end)| [line, joinable(end)]).collect::<Vec<_>>().concat().into()
        })
    }

    /// The lines of the event, each with its line end. A leading byte order mark is removed.
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

/// Returns whether the headers announce an event stream.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    let media = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    media.eq_ignore_ascii_case(b"text/event-stream")
}

/// Replaces the line end CR by LF: a CR before an inserted or removed line could merge with a following LF.
fn joinable(end: &[u8]) -> &[u8] {
    if end == b"\r" { b"\n" } else { end }
}

/// A `message` event of the gateway's own.
pub fn message(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 32);
    out.extend_from_slice(b"event: message\n");
    write_data(&mut out, text, b"\n");
    out.push(b'\n');
    out.into()
}

/// Writes each line of the data as a `data` field. JSON text has line ends only where whitespace is allowed.
fn write_data(out: &mut Vec<u8>, data: &[u8], end: &[u8]) {
    let lines = data.split(|byte| matches!(byte, b'\r' | b'\n'));
    for line in lines {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.extend_from_slice(end);
    }
}

/// The value of the field, if the line is of this field.
fn value<'a>(line: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(field)? {
        [] => Some(b""),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}
