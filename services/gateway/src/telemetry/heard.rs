//! What went wrong, by the answer itself: MCP says most of its failures with a status of 200.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::failed;
use crate::frame::reply::Reply;
use crate::limits::MAX_HEARD;
use crate::relay::events::Splitter;
use crate::relay::is_event_stream;
use tracing::Span;

/// The name that the conventions have for `isError`.
const TOOL_ERROR: &str = "tool_error";

/// Listens to an answer on its way, and tells its span how it ended when it is over.
pub struct Heard {
    span: Span,
    /// What its status says.
    status: Option<String>,
    text: Text,
    told: Option<Told>,
}

enum Text {
    Whole(BytesMut),
    Events(Splitter),
    /// It is too long to be listened to.
    Missed,
}

/// A failure, by the conventions.
enum Told {
    /// A JSON-RPC error, with its code.
    Code(String),
    /// A tool said so.
    Tool,
}

impl Heard {
    /// Listens to an answer with these headers. `status`: what its status has to say, if it is no success.
    pub fn new(span: Span, headers: &HeaderMap, status: Option<String>) -> Self {
        let text = match is_event_stream(headers) {
            true => Text::Events(Splitter::default()),
            false => Text::Whole(BytesMut::new()),
        };
        Self { span, status, text, told: None }
    }

    /// Some of it passes.
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
        // A code is a number; of anything else only that it was an error is told.
        let code = reply.error_member("code").filter(|code| code.parse::<i64>().is_ok());
        return Some(Told::Code(code.unwrap_or("_OTHER").to_owned()));
    }
    reply.is_tool_error().then_some(Told::Tool)
}
