//! Measures the time from a message to the beginning of its answer (as a metric) and to its end (as a span), by the MCP
//! conventions of OpenTelemetry.

use std::sync::Arc;
use std::time::Instant;

use axum::response::IntoResponse;
use http::HeaderMap;
use serving::request_span::fail;
use tracing::{Instrument, Span};

use super::refusal::McpRefusal;
use crate::frame::{Frame, Kind};
use crate::front::watched::observed;
use crate::relay::Response;
use crate::telemetry::{AnswerObserver, SpanRequest, Telemetry, begun, is_sent};
use crate::upstream::fields;
use crate::upstream::request::SESSION;

/// The method name that stands for a client's response, which has no method.
const RESPONSE: &str = "response";

/// The measurement of one message.
pub struct Timed {
    telemetry: Option<Arc<Telemetry>>,
    method: String,
    span: Span,
    began: Instant,
}

impl Timed {
    /// Starts the measurement of a message that was read.
    pub fn begin(telemetry: Option<&Arc<Telemetry>>, frame: &Frame, head: &HeaderMap) -> Self {
        let method = frame.method().unwrap_or(RESPONSE).to_owned();
        let asked = SpanRequest {
            method: &method,
            session: fields::text(head, &SESSION),
            tool: frame.is_tool_call().then(|| frame.tool_name()).flatten(),
            id: frame.id().map(|id| id.text()).filter(|_| frame.kind() == Kind::Request),
        };
        let span = begun(&asked, frame, head);
        Self { telemetry: telemetry.cloned(), method, span, began: Instant::now() }
    }

    /// Runs `work`, and ends the metric when its answer begins; the span ends with the body.
    pub async fn over(
        self,
        work: impl Future<Output = Result<Response, McpRefusal>>,
    ) -> Result<Response, McpRefusal> {
        let answer = work.instrument(self.span.clone()).await.map_err(IntoResponse::into_response);
        let response = answer.unwrap_or_else(|refused| refused);
        let status = response.status();
        let failure = (!status.is_success()).then(|| status.as_str().to_owned());
        if let Some(telemetry) = &self.telemetry {
            telemetry.served(&self.method, failure.as_deref(), self.began.elapsed());
        }
        if is_sent(&self.span) {
            let observer = AnswerObserver::new(self.span, response.headers(), failure);
            return Ok(observed(response, observer));
        }
        if let Some(failure) = &failure {
            fail(&self.span, failure);
        }
        Ok(response)
    }
}
