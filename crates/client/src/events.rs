//! Stream of new entries from `GET /v1/entries/stream`: server-sent events (HTML, section 9.2) with automatic
//! reconnection.
//!
//! When the stream ends, breaks off or falls silent, the client reconnects with `Last-Event-ID`, so that no event is
//! lost or repeated. The client checks that leaf indexes are in order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, Url};
use tokio::time::timeout;

use crate::retry::Backoff;
use crate::wire::{HttpResponse, unreachable};
use crate::{Client, ClientError};

/// Silence after which the connection counts as dead: three times the service's keep-alive interval of 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);
/// Request timeout of a stream; effectively none, since [`SILENCE`] ends it.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
/// Pause before reconnecting after the stream ended.
const PAUSE: Duration = Duration::from_millis(200);
/// Media type of the stream.
const EVENT_STREAM: &str = "text/event-stream";
/// Maximum length of a line.
const MAX_LINE_BYTES: usize = 8 << 20;

/// An entry as reported by the log; not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryEvent {
    /// The leaf index.
    pub index: u64,
    /// JSON, in the format of a row of `GET /v1/entries`.
    pub data: String,
}

/// Starting position of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The first entry of the log.
    Start,
    /// The entry after this leaf.
    After(u64),
    /// The next new entry.
    Now,
}

/// A stream of entries that reconnects automatically.
#[derive(Debug)]
pub struct Events {
    client: Client,
    url: Url,
    /// `true` if no filter is set, so that every leaf must be reported.
    all: bool,
    last_id: Option<String>,
    /// Lowest leaf index that the next event may have.
    next: Option<u64>,
    backoff: Backoff,
    open: Option<OpenStream>,
    /// `true` once the connection has carried anything, if only a comment as keep-alive.
    has_data: bool,
}

#[derive(Debug)]
struct OpenStream {
    response: Response,
    lines: EventLines,
}

impl Client {
    /// Opens a stream of entries. `filters` is a URL query with search parameters; may be empty.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if the URL cannot be built.
    pub fn events(&self, begin: Begin, filters: &str) -> Result<Events, ClientError> {
        let mut url = self.url("v1/entries/stream")?;
        if !filters.is_empty() {
            url.set_query(Some(filters));
        }
        let (last_id, next) = match begin {
            Begin::Start => (Some("none".to_owned()), Some(0)),
            Begin::After(leaf) => (Some(leaf.to_string()), leaf.checked_add(1)),
            Begin::Now => (None, None),
        };
        let backoff = Backoff::within(self.patience());
        Ok(Events {
            client: self.clone(),
            url,
            all: filters.is_empty(),
            last_id,
            next,
            backoff,
            open: None,
            has_data: false,
        })
    }
}

impl Events {
    /// Waits for the next entry. Temporary failures are retried within the client's patience.
    ///
    /// # Errors
    /// If the service refuses, is unreachable for too long, or reports entries out of order
    /// ([`ClientError::Nonsense`]).
    pub async fn next(&mut self) -> Result<EntryEvent, ClientError> {
        loop {
            let open = match self.open.take() {
                Some(open) => open,
                None => self.connect().await?,
            };
            match self.read(open).await? {
                Some(event) => return Ok(event),
                // The stream ended; all events received were processed.
                None => self.pause().await?,
            }
        }
    }

    /// Waits before a reconnection. Connections that carry nothing at all use the patience up.
    async fn pause(&mut self) -> Result<(), ClientError> {
        if std::mem::take(&mut self.has_data) {
            self.backoff = Backoff::within(self.client.patience());
            tokio::time::sleep(PAUSE).await;
            return Ok(());
        }
        let Some(wait) = self.backoff.next(Some(PAUSE)) else {
            let silent = format!("{} carries neither events nor keep-alives", self.url);
            return Err(ClientError::Unreachable(silent));
        };
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Connects, with retries; fails if a retry is useless or the patience is used up.
    async fn connect(&mut self) -> Result<OpenStream, ClientError> {
        loop {
            let mut request = self.client.authorized(self.client.http.get(self.url.clone()));
            request = request.header(ACCEPT, EVENT_STREAM).timeout(FOR_EVER);
            if let Some(last) = &self.last_id {
                request = request.header("last-event-id", last);
            }
            let answered = match timeout(SILENCE, request.send()).await {
                Ok(Ok(response)) if response.status() == StatusCode::OK => {
                    self.client.reached.store(true, Ordering::Relaxed);
                    return opened(response);
                }
                Ok(Ok(response)) => self.client.mark_reached(HttpResponse::of(response).await),
                Ok(Err(error)) => Err(unreachable(error)),
                Err(_) => Err(ClientError::Unreachable("no answer in time".into())),
            };
            self.client.wait_or_fail(answered, &mut self.backoff).await?;
        }
    }

    /// Reads the next entry of this connection; `None` if it has ended.
    async fn read(&mut self, mut open: OpenStream) -> Result<Option<EntryEvent>, ClientError> {
        loop {
            while let Some(fields) = open.lines.next() {
                if let Some(event) = self.take(fields)? {
                    self.open = Some(open);
                    return Ok(Some(event));
                }
            }
            let chunk = timeout(SILENCE, open.response.chunk()).await;
            let Ok(Ok(Some(chunk))) = chunk else { return Ok(None) };
            open.lines.add(&chunk)?;
            self.has_data = true;
        }
    }

    /// Processes one event.
    fn take(&mut self, fields: EventFields) -> Result<Option<EntryEvent>, ClientError> {
        self.backoff = Backoff::within(self.client.patience());
        if let Some(id) = fields.id {
            if self.next.is_none() && self.all {
                // For a stream that starts now, the service first sends an event with the position.
                self.next = id.parse().ok().and_then(|id: u64| id.checked_add(1)).or(Some(0));
            }
            self.last_id = Some(id);
        }
        let (Some(data), "entry") = (fields.data, fields.kind.as_str()) else { return Ok(None) };
        let index = self.last_id.as_deref().and_then(|id| id.parse().ok());
        let index: u64 = index.ok_or_else(|| ClientError::Nonsense("an event without a leaf".into()))?;
        let in_order = match self.next {
            Some(next) if self.all => index == next,
            Some(next) => index >= next,
            None => true,
        };
        if !in_order {
            let expected = self.next.unwrap_or_default();
            return Err(ClientError::Nonsense(format!("leaf {expected} should follow, and {index} came")));
        }
        self.next = index.checked_add(1);
        Ok(Some(EntryEvent { index, data }))
    }
}

/// Returns the stream of a response with status 200, if it is one of events: a page of a proxy is none.
fn opened(response: Response) -> Result<OpenStream, ClientError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    match essence.eq_ignore_ascii_case(EVENT_STREAM) {
        true => Ok(OpenStream { response, lines: EventLines::default() }),
        false => Err(ClientError::Nonsense(format!(
            "{}: the content type is {kind:?}, and {EVENT_STREAM:?} is due",
            response.url()
        ))),
    }
}

/// The fields of one event.
#[derive(Debug, Default, PartialEq, Eq)]
struct EventFields {
    kind: String,
    data: Option<String>,
    id: Option<String>,
}

/// Incremental parser of the stream's lines.
#[derive(Debug, Default)]
struct EventLines {
    bytes: BytesMut,
    /// Number of leading bytes known to contain no line end.
    searched: usize,
    /// The last line ended with a carriage return, so that a following newline belongs to it.
    after_return: bool,
    fields: EventFields,
}

impl EventLines {
    fn add(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        self.bytes.extend_from_slice(chunk);
        match self.bytes.len() > MAX_LINE_BYTES + chunk.len() {
            true => Err(ClientError::Nonsense("a line of the stream is longer than 8 MiB".into())),
            false => Ok(()),
        }
    }

    /// Parses the next complete event.
    fn next(&mut self) -> Option<EventFields> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                let fields = std::mem::take(&mut self.fields);
                if fields != EventFields::default() {
                    return Some(fields);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.fields.kind = value.to_owned(),
                "id" if !value.contains('\0') => self.fields.id = Some(value.to_owned()),
                "data" => match &mut self.fields.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    none => *none = Some(value.to_owned()),
                },
                // Comments, `retry` and unknown fields are ignored.
                _ => {}
            }
        }
    }

    /// The next complete line, terminated by a newline, a carriage return, or both.
    fn line(&mut self) -> Option<String> {
        if self.after_return && !self.bytes.is_empty() {
            self.after_return = false;
            if self.bytes.first() == Some(&b'\n') {
                self.bytes.advance(1);
            }
        }
        let ended = self.bytes[self.searched..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(end) = ended.map(|end| self.searched + end) else {
            self.searched = self.bytes.len();
            return None;
        };
        let line = self.bytes.split_to(end);
        self.after_return = self.bytes.first() == Some(&b'\r');
        self.bytes.advance(1);
        self.searched = 0;
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&str]) -> Vec<EventFields> {
        let mut lines = EventLines::default();
        let mut read = Vec::new();
        for part in parts {
            lines.add(part.as_bytes()).unwrap();
            read.extend(std::iter::from_fn(|| lines.next()));
        }
        read
    }

    fn fields(kind: &str, data: Option<&str>, id: Option<&str>) -> EventFields {
        EventFields { kind: kind.into(), data: data.map(str::to_owned), id: id.map(str::to_owned) }
    }

    #[test]
    fn blocks_are_read_however_the_network_cuts_them() {
        let text = "retry: 2000\nid: 4\n\n: heartbeat\nid: 5\n\nid: 6\nevent: entry\ndata: {\"a\":1}\n\n";
        let expected = [
            fields("", None, Some("4")),
            fields("", None, Some("5")),
            fields("entry", Some("{\"a\":1}"), Some("6")),
        ];
        assert_eq!(read(&[text]), expected);
        for size in 1..text.len() {
            let parts: Vec<&str> =
                text.as_bytes().chunks(size).map(|part| std::str::from_utf8(part).unwrap()).collect();
            assert_eq!(read(&parts), expected, "cut in pieces of {size}");
        }
        assert_eq!(read(&[&text.replace('\n', "\r\n")]), expected);
        assert_eq!(read(&[&text.replace('\n', "\r")]), expected);
    }

    #[test]
    fn several_data_lines_are_one_text_and_unknown_fields_are_nothing() {
        let read = read(&["data:a\ndata: b\ncolour: red\nid\n\n", "data: half"]);
        assert_eq!(read, [fields("", Some("a\nb"), Some(""))]);
    }
}
