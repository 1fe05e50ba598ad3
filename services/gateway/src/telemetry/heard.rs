//! Detection of failures in the content of an answer: MCP reports most failures with HTTP status 200.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::failed;
use crate::frame::reply::Reply;
use crate::limits::MAX_HEARD;
use crate::relay::events::Splitter;
use crate::relay::is_event_stream;
use tracing::Span;

/// The `error.type` of the OpenTelemetry conventions for a result with `isError`.
const TOOL_ERROR: &str = "tool_error";

/// An observer of an answer's body, which records the outcome in the answer's span at the end.
pub struct Heard {
    span: Span,
    /// The failure that the HTTP status shows, if any.
    status: Option<String>,
    text: Text,
    told: Option<Told>,
}

enum Text {
    Whole(BytesMut),
    Events(Splitter),
    /// The body is too long to be inspected.
    Missed,
}

/// A failure in an answer, as the OpenTelemetry conventions name it.
enum Told {
    /// A JSON-RPC error, with its code.
    Code(String),
    /// A tool result with `isError`.
    Tool,
}

impl Heard {
    /// Observes an answer with these headers. `status` is the HTTP status if it is not a success.
    pub fn new(span: Span, headers: &HeaderMap, status: Option<String>) -> Self {
        let text = match is_event_stream(headers) {
            true => Text::Events(Splitter::default()),
            false => Text::Whole(BytesMut::new()),
        };
        Self { span, status, text, told: None }
    }

    /// Inspects a chunk of the body.
    pub fn pass(&mut self, bytes: &Bytes) {
        match &mut self.text {
            Text::Missed => {}
            Text::Whole(text) if text.len() + bytes.len() <= MAX_HEARD => text.extend_from_slice(bytes),
            Text::Whole(_) => self.text = Text::Missed,
            Text::Events(splitter) => match splitter.push(bytes.clone()) {
                Err(_too_long) => self.text = Text::Missed,
                Ok(events) => {
                    let texts = events.iter().filter_map(|event| event.data());
                    let short = texts.filter(|text| text.len() <= MAX_HEARD);
                    if let Some(told) = short.filter_map(told).last() {
                        self.told = Some(told);
                    }
                }
            },
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if let Text::Whole(text) = &mut self.text {
            self.told = told(text.split().freeze());
        }
        match self.told.take() {
            Some(Told::Code(code)) => {
                self.span.record("rpc.response.status_code", code.as_str());
                failed(&self.span, &code);
            }
            Some(Told::Tool) => failed(&self.span, TOOL_ERROR),
            None => {
                if let Some(status) = &self.status {
                    failed(&self.span, status);
                }
            }
        }
    }
}

fn told(text: Bytes) -> Option<Told> {
    let reply = Reply::parse(text).ok()?;
    if reply.is_error() {
        // An error code is a number; for any other value only the error itself is recorded.
        let code = reply.error_member("code").filter(|code| code.parse::<i64>().is_ok());
        return Some(Told::Code(code.unwrap_or("_OTHER").to_owned()));
    }
    reply.is_tool_error().then_some(Told::Tool)
}
