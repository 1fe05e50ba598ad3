//! Detection of the protocol revisions that a server speaks, with one request of each era.

use std::fmt;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use crate::frame::reply::Reply;
use crate::limits::{CHECK_TIME, MAX_CHECKED_ANSWER_BYTES};
use crate::upstream::{ClientName, Exchange, Upstream, UpstreamAnswer};

/// The request of the modern era.
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"tabellion-check","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"tabellion","version":"0"}}}}"#;
/// The request of the legacy eras.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"tabellion-check","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tabellion","version":"0"}}}"#;

/// Eras of MCP that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eras {
    /// True for the revisions 2025-06-18 and 2025-11-25.
    pub legacy: bool,
    /// True for the revision 2026-07-28.
    pub modern: bool,
}

impl Eras {
    /// Both eras.
    pub const ALL: Self = Self { legacy: true, modern: true };

    /// The eras that both speak.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { legacy: self.legacy && other.legacy, modern: self.modern && other.modern }
    }

    /// Returns whether the server speaks any known era.
    #[must_use]
    pub fn any(self) -> bool {
        self.legacy || self.modern
    }
}

impl fmt::Display for Eras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.legacy, self.modern) {
            (true, true) => "legacy and modern",
            (true, false) => "legacy (2025-11-25 and before)",
            (false, true) => "modern (2026-07-28)",
            (false, false) => "none",
        })
    }
}

/// Asks a server for its eras.
///
/// # Errors
/// A description, if the server cannot be reached.
pub async fn eras_of(upstream: &dyn Upstream) -> Result<Eras, String> {
    let modern = question(
        upstream,
        DISCOVER,
        &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")],
    );
    let modern = modern.await?.is_some();
    let legacy = question(upstream, INITIALIZE, &[]).await?;
    if let Some(Some(session)) = &legacy {
        end(upstream, session).await;
    }
    Ok(Eras { legacy: legacy.is_some(), modern })
}

/// Sends a request. Returns `None` if the answer is not a result, otherwise the session that the server opened, if any.
async fn question(
    upstream: &dyn Upstream,
    body: &'static str,
    more: &[(&'static str, &'static str)],
) -> Result<Option<Option<HeaderValue>>, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    for (name, value) in more {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let body = Bytes::from_static(body.as_bytes());
    let (method, client) = (Method::POST, ClientName::Gateway);
    let request = Exchange { method, headers, body, client, time_limit: None };
    let asked = async {
        let answer = upstream.exchange(request).await.map_err(|error| error.to_string())?;
        let session = answer.headers.get("mcp-session-id").cloned();
        Ok(succeeds(answer).await.then_some(session))
    };
    tokio::time::timeout(CHECK_TIME, asked).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

/// Returns whether the answer is a result: as JSON, or as the first response in an event stream.
async fn succeeds(mut answer: UpstreamAnswer) -> bool {
    if !answer.status.is_success() {
        return false;
    }
    let mut body = Vec::new();
    while let Some(Ok(piece)) = answer.body.next().await {
        body.extend_from_slice(&piece);
        if let Some(found) = result_in(&body) {
            return found;
        }
        if body.len() > MAX_CHECKED_ANSWER_BYTES {
            return false;
        }
    }
    false
}

/// Returns whether the response is a result, once the bytes so far contain a response.
fn result_in(body: &[u8]) -> Option<bool> {
    let text = std::str::from_utf8(body).ok()?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    let candidates = std::iter::once(text.trim()).chain(lines);
    let mut replies =
        candidates.filter_map(|text| Reply::parse(Bytes::copy_from_slice(text.as_bytes())).ok());
    replies
        .find(|reply| reply.id().is_some() && reply.method().is_none())
        .map(|reply| reply.result().is_some())
}

/// Ends the session that was opened only for the check.
async fn end(upstream: &dyn Upstream, session: &HeaderValue) {
    let mut headers = HeaderMap::new();
    headers.insert("mcp-session-id", session.clone());
    let (body, client) = (Bytes::new(), ClientName::Gateway);
    let request = Exchange { method: Method::DELETE, headers, body, client, time_limit: None };
    // The server may refuse the DELETE.
    let _ = tokio::time::timeout(CHECK_TIME, upstream.exchange(request)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_found_in_json_and_in_events() {
        let result = r#"{"jsonrpc":"2.0","id":"tabellion-check","result":{}}"#;
        let error = r#"{"jsonrpc":"2.0","id":"tabellion-check","error":{"code":-32601,"message":"no"}}"#;
        assert_eq!(result_in(result.as_bytes()), Some(true));
        assert_eq!(result_in(error.as_bytes()), Some(false));
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        let events = format!("id: 1\ndata:\n\nevent: message\ndata: {note}\n\ndata: {result}\n\n");
        assert_eq!(result_in(events.as_bytes()), Some(true));
        assert_eq!(result_in(&events.as_bytes()[..events.len() - 10]), None);
    }

    #[test]
    fn eras_are_shared_by_all_or_not_at_all() {
        let legacy = Eras { legacy: true, modern: false };
        let modern = Eras { legacy: false, modern: true };
        assert!(!legacy.and(modern).any());
        assert!(Eras::ALL.and(modern).any());
    }
}
