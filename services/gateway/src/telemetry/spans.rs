//! Spans by the MCP conventions: one for a client's message, and below it one for the exchange with the server.
//!
//! They hold names (the method, the tool, the session, the request's id) and how it ended; never arguments, results,
//! subjects or issuers. What a client wrote is cut to [`MAX_SPAN_TEXT`], a method that nobody knows is `other`, and of a
//! session there is a digest: whoever reads the log must not be able to speak in it.

use data_encoding::HEXLOWER;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use tracing::Span;
use tracing::field::Empty;

use super::known;
#[cfg(feature = "otlp")]
use super::otlp::continued;
#[cfg(feature = "otlp")]
pub use super::otlp::is_sent;
use crate::frame::{Frame, TOOLS_CALL};
use crate::limits::MAX_SPAN_TEXT;

/// How many digits of a session's digest are shown.
const SHOWN_DIGEST: usize = 16;

/// What a span says of a message.
pub struct Asked<'a> {
    /// Its method, or what it is instead.
    pub method: &'a str,
    /// The MCP session that it is part of.
    pub session: Option<&'a str>,
    /// The tool that it calls.
    pub tool: Option<String>,
    /// The id of a request, as it is written.
    pub id: Option<&'a str>,
}

impl Asked<'_> {
    /// `tools/call get_time`; methods that nobody knows are `other`, for there are few names of spans.
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

    /// A string's id is its text, without the marks around it.
    fn id(&self) -> Option<&str> {
        self.id.map(|id| cut(id.trim_matches('"')))
    }
}

/// The conventions' attributes; the kind is all that differs.
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

/// The span of one message of a client, below the span that the client names, if it does.
#[must_use]
pub fn begun(asked: &Asked<'_>, frame: &Frame, headers: &HeaderMap) -> Span {
    let span = span!("mcp.server", "server", asked);
    continued(&span, frame, headers);
    span
}

/// The span of one exchange with a server.
#[must_use]
pub fn exchanged(asked: &Asked<'_>) -> Span {
    span!("mcp.client", "client", asked)
}

/// Says in a span what went wrong.
pub fn failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// Whether anybody but the log will see this span: nobody will.
#[cfg(not(feature = "otlp"))]
pub fn is_sent(_span: &Span) -> bool {
    false
}

/// Without a collector no span has a client's above it.
#[cfg(not(feature = "otlp"))]
fn continued(_span: &Span, _frame: &Frame, _headers: &HeaderMap) {}

/// Tells sessions apart, and opens none.
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
            let asked = Asked { method: &method, session: Some("SECRET-SESSION-ID"), tool, id: None };
            exchanged(&asked).in_scope(|| tracing::info!("something went on"));
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("something went on") && text.contains("mcp.session.id"), "{text}");
        assert!(!text.contains("SECRET") && text.len() < 2_000, "{text}");
    }
}
