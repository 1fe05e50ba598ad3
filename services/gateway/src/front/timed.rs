//! How long a message takes until its answer begins, as a metric and as a span (MCP conventions of OpenTelemetry).

use std::sync::Arc;
use std::time::Instant;

use axum::response::IntoResponse;
use tracing::{Instrument, Span};

use super::Response;
use super::refusal::Refusal;
use crate::frame::Frame;
use crate::telemetry::{Telemetry, fail, server_span};

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
    pub fn begin(telemetry: Option<&Arc<Telemetry>>, frame: &Frame, mcp_session: Option<&str>) -> Self {
        let method = frame.method().unwrap_or(RESPONSE).to_owned();
        let tool = if frame.is_tool_call() { frame.tool_name() } else { None };
        let span = server_span(&method, mcp_session, tool.as_deref());
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
        if let Some(failure) = &failure {
            fail(&self.span, failure);
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.served(&self.method, failure.as_deref(), self.began.elapsed());
        }
        Ok(response)
    }
}
