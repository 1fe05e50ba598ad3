//! An upstream that measures its exchanges: with a metric until the response headers (the body may stream for hours),
//! and with a span until the end of the answer.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::StreamExt;
use http::HeaderMap;
use serving::request_span::fail;
use tracing::{Instrument, Span};

use super::spans::exchanged;
use super::{AnswerObserver, SpanRequest, Telemetry, is_sent};
use crate::frame::Frame;
use crate::upstream::request::{METHOD, SESSION};
use crate::upstream::{Exchange, SessionHold, Upstream, UpstreamAnswer, UpstreamError, fields};

/// An [`Upstream`] that measures every exchange.
pub struct Metered {
    inner: Arc<dyn Upstream>,
    telemetry: Arc<Telemetry>,
}

impl Metered {
    /// Wraps this upstream.
    pub fn new(inner: Arc<dyn Upstream>, telemetry: Arc<Telemetry>) -> Self {
        Self { inner, telemetry }
    }
}

#[async_trait]
impl Upstream for Metered {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let message = MeteredMessage::of(&request);
        let (span, began) = (message.span(), Instant::now());
        let answer = self.inner.exchange(request).instrument(span.clone()).await;
        let failure = match &answer {
            Ok(answer) if answer.status.is_success() => None,
            Ok(answer) => Some(answer.status.as_str().to_owned()),
            Err(UpstreamError::NeverSent(_)) => Some("unreachable".to_owned()),
            Err(UpstreamError::Lost(_)) => Some("lost".to_owned()),
            Err(UpstreamError::TimedOut | UpstreamError::Overdue { .. }) => Some("timeout".to_owned()),
        };
        self.telemetry.exchanged(&message.method, failure.as_deref(), began.elapsed());
        match answer {
            Ok(answer) if is_sent(&span) => Ok(answer_observer(answer, span, failure)),
            answer => {
                if let Some(failure) = &failure {
                    fail(&span, failure);
                }
                answer
            }
        }
    }

    fn hold(&self, headers: &HeaderMap) -> SessionHold {
        self.inner.hold(headers)
    }
}

/// The answer with a body that is observed until it is dropped.
fn answer_observer(mut answer: UpstreamAnswer, span: Span, failure: Option<String>) -> UpstreamAnswer {
    let mut listens = AnswerObserver::new(span, &answer.headers, failure);
    let listening = answer.body.inspect(move |chunk| {
        if let Ok(bytes) = chunk {
            listens.pass(bytes);
        }
    });
    answer.body = listening.boxed();
    answer
}

/// Maximum length of a message that is parsed again for its method, in bytes.
const READ_AGAIN: usize = 64 << 10;

/// The description of an exchange for its metric and span.
struct MeteredMessage {
    /// The method of the message; without a message, or with a long one, the `Mcp-Method` header or the HTTP method.
    method: String,
    session: Option<String>,
    tool: Option<String>,
    id: Option<String>,
    is_there: bool,
}

impl MeteredMessage {
    fn of(request: &Exchange) -> Self {
        let header = |name| fields::text(&request.headers, &name).map(str::to_owned);
        let short = request.body.len() <= READ_AGAIN;
        let frame = short.then(|| Frame::parse(request.body.clone()).ok()).flatten();
        let named = frame.as_ref().and_then(|frame| frame.method().map(str::to_owned));
        let method = named.or_else(|| header(METHOD)).unwrap_or_else(|| request.method.to_string());
        let tool = frame.as_ref().filter(|frame| frame.is_tool_call()).and_then(Frame::tool_name);
        let id = frame.as_ref().and_then(|frame| frame.id().map(|id| id.text().to_owned()));
        let is_there = !request.body.is_empty();
        Self { method, session: header(SESSION), tool, id, is_there }
    }

    /// The span of the exchange. The conventions define spans of messages; opening a stream, which may last for hours,
    /// has none.
    fn span(&self) -> Span {
        if !self.is_there {
            return Span::none();
        }
        exchanged(&SpanRequest {
            method: &self.method,
            session: self.session.as_deref(),
            tool: self.tool.clone(),
            id: self.id.as_deref(),
        })
    }
}
