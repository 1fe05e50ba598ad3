//! Bodies of which somebody wants to know how long they are read.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Response;
use crate::telemetry::Heard;

/// The response; the guard falls when nobody reads its body any more.
pub fn watched(response: Response, guard: DropGuard) -> Response {
    response.map(|body| Body::new(Watched { body, _guard: guard }))
}

/// The response, which ends when this says so: an answer that never ends by itself must not hold up a stop.
pub fn ending_with(response: Response, stop: CancellationToken) -> Response {
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(stop.cancelled_owned())))
}

/// The response, which is listened to until nobody reads its body any more.
pub fn heard(response: Response, listens: Heard) -> Response {
    response.map(|body| Body::new(Overheard { body, listens }))
}

struct Overheard {
    body: Body,
    listens: Heard,
}

impl HttpBody for Overheard {
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
            self.listens.pass(bytes);
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

struct Watched {
    body: Body,
    _guard: DropGuard,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
