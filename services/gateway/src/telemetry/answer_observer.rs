//! Detection of failures in the content of an answer: MCP reports most failures with HTTP status 200.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use serving::request_span::fail;
use tracing::Span;

use crate::frame::reply::Reply;
use crate::limits::MAX_OBSERVED_BYTES;
use crate::upstream::events::Splitter;
use crate::upstream::events::is_event_stream;

/// The `error.type` of the OpenTelemetry conventions for a result with `isError`.
const TOOL_ERROR: &str = "tool_error";

/// An observer of an answer's body, which records the outcome in the answer's span at the end.
pub struct AnswerObserver {
    span: Span,
    /// The failure that the HTTP status shows, if any.
    status: Option<String>,
    text: BodyText,
    failure: Option<AnswerFailure>,
}

enum BodyText {
    Whole(BytesMut),
    Events(Splitter),
    /// The body is too long to be inspected.
    Missed,
}

/// A failure in an answer, as the OpenTelemetry conventions name it.
enum AnswerFailure {
    /// A JSON-RPC error, with its code.
    Code(String),
    /// A tool result with `isError`.
    Tool,
}

impl AnswerObserver {
    /// Observes an answer with these headers. `status` is the HTTP status if it is not a success.
    pub fn new(span: Span, headers: &HeaderMap, status: Option<String>) -> Self {
        let text = match is_event_stream(headers) {
            true => BodyText::Events(Splitter::default()),
            false => BodyText::Whole(BytesMut::new()),
        };
        Self { span, status, text, failure: None }
    }

    /// Inspects a chunk of the body.
    pub fn pass(&mut self, bytes: &Bytes) {
        match &mut self.text {
            BodyText::Missed => {}
            BodyText::Whole(text) if text.len() + bytes.len() <= MAX_OBSERVED_BYTES => {
                text.extend_from_slice(bytes)
            }
            BodyText::Whole(_) => self.text = BodyText::Missed,
            BodyText::Events(splitter) => match splitter.push(bytes.clone()) {
                Err(_too_long) => self.text = BodyText::Missed,
                Ok(events) => {
                    let texts = events.iter().filter_map(|event| event.data());
                    let short = texts.filter(|text| text.len() <= MAX_OBSERVED_BYTES);
                    if let Some(failure) = short.filter_map(failure).last() {
                        self.failure = Some(failure);
                    }
                }
            },
        }
    }
}

impl Drop for AnswerObserver {
    fn drop(&mut self) {
        if let BodyText::Whole(text) = &mut self.text {
            self.failure = failure(text.split().freeze());
        }
        match self.failure.take() {
            Some(AnswerFailure::Code(code)) => {
                self.span.record("rpc.response.status_code", code.as_str());
                fail(&self.span, &code);
            }
            Some(AnswerFailure::Tool) => fail(&self.span, TOOL_ERROR),
            None => {
                if let Some(status) = &self.status {
                    fail(&self.span, status);
                }
            }
        }
    }
}

fn failure(text: Bytes) -> Option<AnswerFailure> {
    let reply = Reply::parse(text).ok()?;
    if reply.is_error() {
        // An error code is a number; for any other value only the error itself is recorded.
        let code = reply.error_member("code").filter(|code| code.parse::<i64>().is_ok());
        return Some(AnswerFailure::Code(code.unwrap_or("_OTHER").to_owned()));
    }
    reply.is_tool_error().then_some(AnswerFailure::Tool)
}
