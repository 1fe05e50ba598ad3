//! A server whose answers are awaited for a limited time, in the answers to all requests but calls.
//!
//! The limit is that of the request ([`Exchange::time_limit`]), from when it is sent to the end of its answer. After it the
//! answer ends with [`UpstreamError::Overdue`], which names the server. A server of the legacy eras is told so, and thus a
//! started server's session counts the request as open no more.
//!
//! Not here: the limit of calls, whose outcome is recorded (`relay::CallLimit`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::HeaderMap;
use tokio::time::{Instant, timeout_at};

use super::cancellation::Cancellation;
use super::request::{is_initialize, is_modern};
use super::text::{RpcKind, RpcMessage};
use super::{AnswerBody, Exchange, SessionHold, Upstream, UpstreamAnswer, UpstreamError};

/// An [`Upstream`] that keeps to the limits of its requests.
pub struct TimeLimited {
    inner: Arc<dyn Upstream>,
    name: Arc<str>,
}

impl TimeLimited {
    /// Wraps this server. `name` denotes it in errors that clients read.
    pub fn new(inner: Arc<dyn Upstream>, name: impl Into<Arc<str>>) -> Self {
        Self { inner, name: name.into() }
    }
}

#[async_trait]
impl Upstream for TimeLimited {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let Some(time) = request.time_limit else { return self.inner.exchange(request).await };
        let cancellation = cancellation(&self.inner, &request);
        let limit = RequestLimit { server: self.name.clone(), began: Instant::now(), time, cancellation };
        match timeout_at(limit.deadline(), self.inner.exchange(request)).await {
            Ok(Ok(answer)) => Ok(UpstreamAnswer { body: limit.limited(answer.body), ..answer }),
            Ok(Err(UpstreamError::TimedOut)) | Err(_) => Err(limit.give_up()),
            Ok(Err(error)) => Err(error),
        }
    }

    fn hold(&self, headers: &HeaderMap) -> SessionHold {
        self.inner.hold(headers)
    }
}

/// The limit of a request that was sent.
struct RequestLimit {
    server: Arc<str>,
    began: Instant,
    time: Duration,
    /// The notification to a legacy server.
    cancellation: Option<Cancellation>,
}

impl RequestLimit {
    fn deadline(&self) -> Instant {
        self.began + self.time
    }

    /// The body, which ends at the deadline.
    fn limited(self, body: AnswerBody) -> AnswerBody {
        let limited = stream::unfold(Some((body, self)), |reading| async move {
            let (mut body, limit) = reading?;
            match limit.next(&mut body).await? {
                Err(UpstreamError::TimedOut) => {
                    tracing::warn!(server = %limit.server, "the answer to a request is not awaited any longer");
                    Some((Err(limit.give_up()), None))
                }
                chunk => Some((chunk, Some((body, limit)))),
            }
        });
        limited.boxed()
    }

    async fn next(&self, body: &mut AnswerBody) -> Option<Result<Bytes, UpstreamError>> {
        match timeout_at(self.deadline(), body.next()).await {
            // A body that has ended is complete, however late its reader notices.
            Ok(None) => None,
            // A server that never pauses does not go on beyond the limit.
            Ok(chunk) if Instant::now() < self.deadline() => chunk,
            _ => Some(Err(UpstreamError::TimedOut)),
        }
    }

    /// Tells the server, and returns the error for the client.
    fn give_up(self) -> UpstreamError {
        if let Some(cancellation) = self.cancellation {
            cancellation.send();
        }
        let elapsed = self.began.elapsed();
        let after = if elapsed >= self.time { self.time } else { rounded(elapsed) };
        UpstreamError::Overdue { server: self.server, after }
    }
}

/// The cancellation of a request, if it is one of the legacy eras. `initialize` cannot be cancelled.
fn cancellation(server: &Arc<dyn Upstream>, request: &Exchange) -> Option<Cancellation> {
    let message = RpcMessage::read_bytes(&request.body)?;
    let is_cancelled =
        message.kind == RpcKind::Request && !is_initialize(&message) && !is_modern(request, &message);
    let id = message.id().filter(|_| is_cancelled)?;
    Some(Cancellation::of(server, request, id.raw()))
}

/// A time in whole seconds, or in milliseconds if it is shorter than one.
fn rounded(time: Duration) -> Duration {
    match time.as_secs() {
        0 => Duration::from_millis(u64::from(time.subsec_millis())),
        seconds => Duration::from_secs(seconds),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::Method;

    use super::*;
    use crate::upstream::{ClientName, answer};

    /// A server that answers with this body.
    struct Answering(fn() -> AnswerBody);

    #[async_trait]
    impl Upstream for Answering {
        async fn exchange(&self, _: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
            Ok(answer::events((self.0)()))
        }
    }

    fn never_pausing() -> AnswerBody {
        stream::repeat_with(|| Ok(answer::ALIVE)).boxed()
    }

    fn out_of_time() -> AnswerBody {
        stream::iter([Ok(answer::ALIVE), Err(UpstreamError::TimedOut), Ok(answer::ALIVE)]).boxed()
    }

    async fn answered(body: fn() -> AnswerBody, time_limit: Option<Duration>) -> UpstreamAnswer {
        let server = TimeLimited::new(Arc::new(Answering(body)), "the server s");
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let (method, headers, client) = (Method::POST, HeaderMap::new(), ClientName::Gateway);
        server.exchange(Exchange { method, headers, body, client, time_limit }).await.unwrap()
    }

    #[tokio::test]
    async fn a_body_that_never_pauses_ends_at_the_limit_and_names_the_server() {
        let answer = answered(never_pausing, Some(Duration::from_millis(20))).await;
        let parts: Vec<_> = answer.body.collect().await;
        let last = parts.last().unwrap().as_ref().unwrap_err();
        assert_eq!(last.to_string(), "the server s gave no answer within 20ms");
    }

    #[tokio::test]
    async fn a_shorter_time_of_the_server_itself_is_named_as_well_and_ends_the_body() {
        let answer = answered(out_of_time, Some(Duration::from_secs(3_600))).await;
        let parts: Vec<_> = answer.body.collect().await;
        assert_eq!(parts.len(), 2);
        assert!(matches!(parts[1], Err(UpstreamError::Overdue { after, .. }) if after.as_secs() < 3_600));
    }

    #[tokio::test]
    async fn a_body_whose_end_is_read_after_the_limit_is_complete() {
        let answer = answered(|| stream::empty().boxed(), Some(Duration::ZERO)).await;
        assert_eq!(answer.body.count().await, 0);
    }

    #[tokio::test]
    async fn without_a_limit_nothing_changes() {
        let answer = answered(out_of_time, None).await;
        let parts: Vec<_> = answer.body.collect().await;
        assert!(matches!(parts[1], Err(UpstreamError::TimedOut)));
        assert_eq!(parts.len(), 3);
    }

    #[test]
    fn times_are_shown_in_whole_seconds() {
        assert_eq!(rounded(Duration::from_micros(60_000_123)), Duration::from_secs(60));
        assert_eq!(rounded(Duration::from_micros(250_900)), Duration::from_millis(250));
    }
}
