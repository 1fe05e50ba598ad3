//! Entries as they come, from `GET /v1/entries/stream`: server-sent events (HTML, section 9.2), read by somebody who comes
//! back by himself.
//!
//! Whenever the stream ends, breaks off or falls silent, it is asked for again behind the last event that was seen
//! (`Last-Event-ID`), so nothing is lost and nothing comes twice. That the leaves come in order is checked here.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http::StatusCode;
use http::header::ACCEPT;
use reqwest::{Response, Url};
use tokio::time::timeout;

use crate::retry::Backoff;
use crate::wire::{Answer, unreachable};
use crate::{Client, ClientError};

/// The service speaks every 15 seconds; after three times as much silence the connection is taken to be dead.
const SILENCE: Duration = Duration::from_secs(45);
/// A stream has no end: nothing but silence ends it.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
/// How long a reader waits who was told that the stream ends.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest line that is read.
const MAX_LINE_BYTES: usize = 8 << 20;

/// An entry, as the log tells of it. Nobody has verified it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The leaf.
    pub index: u64,
    /// JSON, as `/v1/entries` lists it.
    pub data: String,
}

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With the first entry.
    Start,
    /// Behind this leaf.
    After(u64),
    /// With what comes next.
    Now,
}

/// A stream of entries that goes on by itself.
#[derive(Debug)]
pub struct Events {
    client: Client,
    url: Url,
    /// Whether every leaf is told, so that one that is missing is noticed.
    all: bool,
    last_id: Option<String>,
    /// The leaf that comes next at the earliest.
    next: Option<u64>,
    backoff: Backoff,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    response: Response,
    lines: Lines,
}

impl Client {
    /// Entries from here on. `filters` are parameters of the search, encoded as a query, and may be empty.
    ///
    /// # Errors
    /// If the filters are no query.
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
        Ok(Events { client: self.clone(), url, all: filters.is_empty(), last_id, next, backoff, open: None })
    }
}

impl Events {
    /// The next entry, whenever it comes. Waits out what passes within the client's patience.
    ///
    /// # Errors
    /// If the service refuses, cannot be reached for too long, or tells entries out of order.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            let open = match self.open.take() {
                Some(open) => open,
                None => self.connect().await?,
            };
            match self.read(open).await? {
                Some(event) => return Ok(event),
                // It ended, and says so or not: what it had told was taken.
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Asks until there is a stream; fails when another try is no use or patience is used up.
    async fn connect(&mut self) -> Result<Open, ClientError> {
        loop {
            let mut request = self.client.authorized(self.client.http.get(self.url.clone()));
            request = request.header(ACCEPT, "text/event-stream").timeout(FOR_EVER);
            if let Some(last) = &self.last_id {
                request = request.header("last-event-id", last);
            }
            let answered = match timeout(SILENCE, request.send()).await {
                Ok(Ok(response)) if response.status() == StatusCode::OK => {
                    self.client.reached.store(true, Ordering::Relaxed);
                    return Ok(Open { response, lines: Lines::default() });
                }
                Ok(Ok(response)) => self.client.heard(Answer::of(response).await),
                Ok(Err(error)) => Err(unreachable(error)),
                Err(_) => Err(ClientError::Unreachable("no answer in time".into())),
            };
            self.client.wait_or_fail(answered, &mut self.backoff).await?;
        }
    }

    /// The next entry of this connection; `None` when it has ended.
    async fn read(&mut self, mut open: Open) -> Result<Option<Event>, ClientError> {
        loop {
            while let Some(told) = open.lines.next() {
                if let Some(event) = self.take(told)? {
                    self.open = Some(open);
                    return Ok(Some(event));
                }
            }
            let chunk = timeout(SILENCE, open.response.chunk()).await;
            let Ok(Ok(Some(chunk))) = chunk else { return Ok(None) };
            open.lines.add(&chunk)?;
        }
    }

    /// What one block of lines means.
    fn take(&mut self, told: Told) -> Result<Option<Event>, ClientError> {
        self.backoff = Backoff::within(self.client.patience());
        if let Some(id) = told.id {
            if self.next.is_none() && self.all {
                // Where a stream of what is to come begins, the service says first.
                self.next = id.parse().ok().and_then(|id: u64| id.checked_add(1)).or(Some(0));
            }
            self.last_id = Some(id);
        }
        let (Some(data), "entry") = (told.data, told.kind.as_str()) else { return Ok(None) };
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
        Ok(Some(Event { index, data }))
    }
}

/// A block of lines that belong together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    kind: String,
    data: Option<String>,
    id: Option<String>,
}

/// Lines of a stream, put together from what the network hands over.
#[derive(Debug, Default)]
struct Lines {
    bytes: BytesMut,
    /// Bytes that hold no line end for sure.
    searched: usize,
    /// The last line ended with a carriage return: a newline that follows belongs to it.
    after_return: bool,
    told: Told,
}

impl Lines {
    fn add(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        self.bytes.extend_from_slice(chunk);
        match self.bytes.len() > MAX_LINE_BYTES + chunk.len() {
            true => Err(ClientError::Nonsense("a line of the stream is longer than 8 MiB".into())),
            false => Ok(()),
        }
    }

    /// The next block that is complete.
    fn next(&mut self) -> Option<Told> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                let told = std::mem::take(&mut self.told);
                if told != Told::default() {
                    return Some(told);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.told.kind = value.to_owned(),
                "id" if !value.contains('\0') => self.told.id = Some(value.to_owned()),
                "data" => match &mut self.told.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    none => *none = Some(value.to_owned()),
                },
                // Comments, `retry`, and what the format may learn yet.
                _ => {}
            }
        }
    }

    /// The next line that has ended, by a newline, a carriage return, or both.
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

    fn read(parts: &[&str]) -> Vec<Told> {
        let mut lines = Lines::default();
        let mut read = Vec::new();
        for part in parts {
            lines.add(part.as_bytes()).unwrap();
            read.extend(std::iter::from_fn(|| lines.next()));
        }
        read
    }

    fn told(kind: &str, data: Option<&str>, id: Option<&str>) -> Told {
        Told { kind: kind.into(), data: data.map(str::to_owned), id: id.map(str::to_owned) }
    }

    #[test]
    fn blocks_are_read_however_the_network_cuts_them() {
        let text = "retry: 2000\nid: 4\n\n: heartbeat\nid: 5\n\nid: 6\nevent: entry\ndata: {\"a\":1}\n\n";
        let expected = [
            told("", None, Some("4")),
            told("", None, Some("5")),
            told("entry", Some("{\"a\":1}"), Some("6")),
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
        assert_eq!(read, [told("", Some("a\nb"), Some(""))]);
    }
}
