//! Response bodies that report the end of their reading.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Frame, SizeHint};
use serving::guarded_body::guarded;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::relay::Response;
use crate::telemetry::AnswerObserver;

/// The response with a guard that is dropped when its body is not read any more.
pub fn watched(response: Response, guard: DropGuard) -> Response {
    response.map(|body| guarded(body, guard))
}

/// The response with a body that also ends on `stop`: an endless stream must not delay the stop of the gateway.
pub fn ending_with(response: Response, stop: CancellationToken) -> Response {
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(stop.cancelled_owned())))
}

/// The response with a body that is passed to the telemetry while it is read.
pub fn observed(response: Response, observer: AnswerObserver) -> Response {
    response.map(|body| Body::new(ObservedBody { body, observer }))
}

struct ObservedBody {
    body: Body,
    observer: AnswerObserver,
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            self.observer.pass(bytes);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
