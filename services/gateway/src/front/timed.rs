//! How long a message takes until its answer begins, as a metric, and until it ends, as a span (MCP conventions of
//! OpenTelemetry).

use std::sync::Arc;
use std::time::Instant;

use axum::response::IntoResponse;
use http::HeaderMap;
use tracing::{Instrument, Span};

use super::Response;
use super::headers;
use super::refusal::Refusal;
use super::watched::heard;
use crate::frame::{Frame, Kind};
use crate::telemetry::{Asked, Heard, Telemetry, begun, failed, is_sent};

/// What a client's response to us is called: it has no method.
const RESPONSE: &str = "response";

/// A message that is being answered.
pub struct Timed {
    telemetry: Option<Arc<Telemetry>>,
    method: String,
    span: Span,
    began: Instant,
}

impl Timed {
    /// Begins with a message that was read.
    pub fn begin(telemetry: Option<&Arc<Telemetry>>, frame: &Frame, head: &HeaderMap) -> Self {
        let method = frame.method().unwrap_or(RESPONSE).to_owned();
        let asked = Asked {
            method: &method,
            session: headers::text(head, &headers::SESSION),
            tool: frame.is_tool_call().then(|| frame.tool_name()).flatten(),
            id: frame.id().map(|id| id.text()).filter(|_| frame.kind() == Kind::Request),
        };
        let span = begun(&asked, frame, head);
        Self { telemetry: telemetry.cloned(), method, span, began: Instant::now() }
    }

    /// Ends when the answer begins.
    pub async fn over(
        self,
        work: impl Future<Output = Result<Response, Refusal>>,
    ) -> Result<Response, Refusal> {
        let answer = work.instrument(self.span.clone()).await.map_err(IntoResponse::into_response);
        let response = answer.unwrap_or_else(|refused| refused);
        let status = response.status();
        let failure = (!status.is_success()).then(|| status.as_str().to_owned());
        if let Some(telemetry) = &self.telemetry {
            telemetry.served(&self.method, failure.as_deref(), self.began.elapsed());
        }
        if is_sent(&self.span) {
            let listens = Heard::new(self.span, response.headers(), failure);
            return Ok(heard(response, listens));
        }
        if let Some(failure) = &failure {
            failed(&self.span, failure);
        }
        Ok(response)
    }
}
