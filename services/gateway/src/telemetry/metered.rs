//! An upstream whose exchanges are timed: until its headers are there, for what follows may stream for hours.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tracing::Instrument;

use super::{Telemetry, client_span, fail};
use crate::frame::Frame;
use crate::upstream::{Answer, Exchange, Upstream, UpstreamError};

/// Times every exchange.
pub struct Metered {
    inner: Arc<dyn Upstream>,
    telemetry: Arc<Telemetry>,
}

impl Metered {
    /// An upstream, timed.
    pub fn new(inner: Arc<dyn Upstream>, telemetry: Arc<Telemetry>) -> Self {
        Self { inner, telemetry }
    }
}

#[async_trait]
impl Upstream for Metered {
    async fn exchange(&self, request: Exchange) -> Result<Answer, UpstreamError> {
        let method = method(&request);
        let (span, began) = (client_span(&method), Instant::now());
        let answer = self.inner.exchange(request).instrument(span.clone()).await;
        let failure = match &answer {
            Ok(answer) if answer.status.is_success() => None,
            Ok(answer) => Some(answer.status.as_str().to_owned()),
            Err(UpstreamError::NeverSent(_)) => Some("unreachable".to_owned()),
            Err(UpstreamError::Lost(_)) => Some("lost".to_owned()),
            Err(UpstreamError::TimedOut) => Some("timeout".to_owned()),
        };
        if let Some(failure) = &failure {
            fail(&span, failure);
        }
        self.telemetry.exchanged(&method, failure.as_deref(), began.elapsed());
        answer
    }
}

/// The longest message that is read once more for its method.
const READ_AGAIN: usize = 64 << 10;

/// The method of the message; of an exchange without one, or with a long one, the HTTP method.
fn method(request: &Exchange) -> String {
    if let Some(method) = request.headers.get("mcp-method").and_then(|value| value.to_str().ok()) {
        return method.to_owned();
    }
    let short = request.body.len() <= READ_AGAIN;
    let frame = short.then(|| Frame::parse(request.body.clone()).ok()).flatten();
    frame.and_then(|frame| frame.method().map(str::to_owned)).unwrap_or_else(|| request.method.to_string())
}
