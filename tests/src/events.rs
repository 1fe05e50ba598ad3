//! HTTP responses that are still arriving: server-sent events, read one by one.

use std::io::{BufReader, Read};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::http::{self, Answer};

/// A response whose head was read, and whose body is arriving.
pub struct Coming {
    /// Status and headers.
    pub head: Answer,
    stream: BufReader<TcpStream>,
    read: Vec<u8>,
    ended: bool,
}

/// One server-sent event, unparsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// All lines of the event with their line breaks, without the empty line at the end.
    pub text: String,
}

impl Coming {
    pub(crate) fn new(head: Answer, stream: BufReader<TcpStream>) -> Self {
        Self { head, stream, read: Vec::new(), ended: false }
    }

    /// Waits for the next event. `None` at the end of the response, or after the read timeout of the connection.
    pub fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                return Some(Event { text: String::from_utf8_lossy(&event[..end]).into_owned() });
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// Waits for the next event that contains a message.
    pub fn message(&mut self) -> Option<Value> {
        std::iter::from_fn(|| self.event()).find_map(|event| event.message())
    }

    /// Returns all messages up to the end of the response, which may be a stream or one JSON document.
    pub fn messages(&mut self) -> Vec<Value> {
        if self.head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return std::iter::from_fn(|| self.message()).collect();
        }
        serde_json::from_slice(&self.rest()).into_iter().collect()
    }

    /// Returns all bytes up to the end of the response.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.read)
    }

    /// Returns `true` if the body was read to its end. For a chunked body this is the last chunk, not a broken
    /// connection.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Sets the read timeout.
    pub fn patient_for(self, patience: Duration) -> Self {
        self.stream.get_ref().set_read_timeout(Some(patience)).expect("a socket");
        self
    }

    /// Reads more of the body; `false` at the end.
    fn more(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let chunked = self.head.header("transfer-encoding") == Some("chunked");
        let got = if chunked { http::chunk(&mut self.stream) } else { self.some() };
        match got {
            Ok(Some(bytes)) => self.read.extend(bytes),
            Ok(None) => self.ended = true,
            Err(_) => return false,
        }
        !self.ended
    }

    /// Reads a body with a length, or up to the end of the connection.
    fn some(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        match self.head.header("content-length") {
            Some(length) => {
                let length = length.parse().map_err(std::io::Error::other)?;
                (&mut self.stream).take(length).read_to_end(&mut body)?;
            }
            None => {
                self.stream.read_to_end(&mut body)?;
            }
        }
        self.read.extend(body);
        Ok(None)
    }
}

impl Event {
    /// Returns the values of one field, in order.
    pub fn field<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.text.lines().filter_map(move |line| {
            let value = line.strip_prefix(name)?.strip_prefix(':')?;
            Some(value.strip_prefix(' ').unwrap_or(value))
        })
    }

    /// Returns the `data` lines joined by line breaks; `None` if there are none.
    pub fn data(&self) -> Option<String> {
        let lines: Vec<&str> = self.field("data").collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Returns the event ID, which a client sends to resume the stream (`Last-Event-ID`).
    pub fn id(&self) -> Option<&str> {
        self.field("id").next()
    }

    /// Returns the data parsed as JSON.
    pub fn message(&self) -> Option<Value> {
        serde_json::from_str(&self.data()?).ok()
    }
}
