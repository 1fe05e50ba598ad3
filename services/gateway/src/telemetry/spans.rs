//! Spans by the MCP conventions of OpenTelemetry: one for a client's message, and below it one for the exchange with
//! the server.
//!
//! They contain names (method, tool, session, request id) and the outcome, never arguments, results, subjects or
//! issuers. Client texts are cut to [`MAX_SPAN_TEXT`], unknown methods become `other`, and a session is shown as a
//! digest: a reader of the log must not be able to use the session.

use data_encoding::HEXLOWER;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use tracing::Span;
use tracing::field::Empty;

use super::known;
use crate::frame::{Frame, TOOLS_CALL};
use crate::limits::MAX_SPAN_TEXT;

/// Number of hex digits of a session's digest that are shown.
const SHOWN_DIGEST: usize = 16;

/// The attributes of a message's span.
pub struct SpanRequest<'a> {
    /// The method of the message, or a word that stands for it.
    pub method: &'a str,
    /// The MCP session of the message.
    pub session: Option<&'a str>,
    /// The tool that the message calls.
    pub tool: Option<String>,
    /// The raw JSON of a request's id.
    pub id: Option<&'a str>,
}

impl SpanRequest<'_> {
    /// The span name, such as `tools/call get_time`. Unknown methods are `other`, because span names must be few.
    fn name(&self) -> String {
        match self.tool() {
            Some(tool) => format!("{} {tool}", known(self.method)),
            None => known(self.method).to_owned(),
        }
    }

    fn tool(&self) -> Option<&str> {
        self.tool.as_deref().map(cut)
    }

    fn operation(&self) -> Option<&'static str> {
        (self.method == TOOLS_CALL).then_some("execute_tool")
    }

    /// The id without the quotes of a string, cut to [`MAX_SPAN_TEXT`].
    fn id(&self) -> Option<&str> {
        self.id.map(|id| cut(id.trim_matches('"')))
    }
}

/// Makes a span with the attributes of the conventions; the name and kind are parameters.
macro_rules! span {
    ($name:literal, $kind:literal, $asked:expr) => {
        tracing::info_span!(
            target: super::TARGET,
            $name,
            otel.name = $asked.name(),
            otel.kind = $kind,
            otel.status_code = Empty,
            "mcp.method.name" = known($asked.method),
            "mcp.session.id" = $asked.session.map(digest),
            "gen_ai.operation.name" = $asked.operation(),
            "gen_ai.tool.name" = $asked.tool(),
            "jsonrpc.request.id" = $asked.id(),
            "rpc.response.status_code" = Empty,
            "error.type" = Empty,
        )
    };
}

/// The span of a client's message, a child of the client's own span if the message names one.
#[must_use]
pub fn begun(asked: &SpanRequest<'_>, frame: &Frame, headers: &HeaderMap) -> Span {
    let span = span!("mcp.server", "server", asked);
    continued(&span, frame, headers);
    span
}

/// The span of one exchange with a server.
#[must_use]
pub fn exchanged(asked: &SpanRequest<'_>) -> Span {
    span!("mcp.client", "client", asked)
}

/// Returns whether the span is exported.
#[cfg(feature = "otlp")]
pub fn is_sent(span: &Span) -> bool {
    span_export::is_sampled(span)
}

/// Returns false: without the feature `otlp`, spans only appear in the log.
#[cfg(not(feature = "otlp"))]
pub fn is_sent(_span: &Span) -> bool {
    false
}

/// Makes the span a child of the client's: of the trace context in the message's `_meta` (SEP-414), otherwise of the one
/// in the HTTP headers, to which it links if both are present. Forwarded messages are not changed: a server sees the
/// client's context, not the gateway's.
#[cfg(feature = "otlp")]
fn continued(span: &Span, frame: &Frame, headers: &HeaderMap) {
    let in_message = span_export::TraceContext::of_members(|name| frame.meta_string(name));
    span_export::continue_trace(span, &[in_message, span_export::TraceContext::of_headers(headers)]);
}

/// Does nothing: without the feature `otlp`, spans have no remote parent.
#[cfg(not(feature = "otlp"))]
fn continued(_span: &Span, _frame: &Frame, _headers: &HeaderMap) {}

/// A digest that distinguishes sessions without revealing their ids.
fn digest(session: &str) -> String {
    let digest = HEXLOWER.encode(&Sha256::digest(session.as_bytes()));
    format!("sha256:{}", digest.get(..SHOWN_DIGEST).unwrap_or(&digest))
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SPAN_TEXT)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stranger_neither_reads_a_session_in_the_log_nor_fills_the_disk_with_a_method() {
        let log = Log::default();
        let to = log.clone();
        let lines = tracing_subscriber::fmt().with_writer(move || to.clone()).finish();
        tracing::subscriber::with_default(lines, || {
            let method = "m".repeat(300_000);
            let tool = Some("t".repeat(300_000));
            let asked = SpanRequest { method: &method, session: Some("SECRET-SESSION-ID"), tool, id: None };
            exchanged(&asked).in_scope(|| tracing::info!("something went on"));
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("something went on") && text.contains("mcp.session.id"), "{text}");
        assert!(!text.contains("SECRET") && text.len() < 2_000, "{text}");
    }
}
