//! Request bodies, of which the part that the service does not read is read and dropped.
//!
//! A response may come before its request body was read, for example 401, 415, 429 or 503. If the connection were closed
//! then, a client that is still sending would get a reset from the system, and most clients would report that instead of
//! the response. So the rest of the body is read in the background, within bounds, while the response is sent.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http::header::EXPECT;
use http::{Request, Version};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::{DISCARD_BYTES, DISCARD_TIME};

/// Returns the request with a body whose rest is discarded when it is dropped, until `stop`. A stream of HTTP/2 ends without
/// its connection, so its rest is not read.
pub(crate) fn discarding_the_rest(request: Request<Incoming>, stop: &CancellationToken) -> Request<Body> {
    if request.version() > Version::HTTP_11 {
        return request.map(Body::new);
    }
    let arrives = !asks_first(&request);
    request.map(|incoming| match incoming.is_end_stream() {
        true => Body::empty(),
        false => Body::new(RequestBody { incoming: Some(incoming), arrives, stop: stop.clone() }),
    })
}

/// Returns `true` if the client sends nothing before the service reads (RFC 9110, section 10.1.1).
fn asks_first(request: &Request<Incoming>) -> bool {
    let expected = request.headers().get(EXPECT);
    request.version() == Version::HTTP_11
        && expected.is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

struct RequestBody {
    /// `None` once it was read to its end.
    incoming: Option<Incoming>,
    /// `true` if the client sends the body, also if it is not read.
    arrives: bool,
    stop: CancellationToken,
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.arrives = true;
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(incoming).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.incoming = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let rest = self.incoming.take().filter(|rest| self.arrives && !rest.is_end_stream());
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(self.stop.clone().run_until_cancelled_owned(discard(rest)));
        }
    }
}

/// Reads up to [`DISCARD_BYTES`] for at most [`DISCARD_TIME`]. Then the connection ends, if the body has not.
async fn discard(mut rest: Incoming) {
    let reading = async {
        let mut seen = 0;
        while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut rest).poll_frame(context)).await {
            seen += frame.data_ref().map_or(0, Bytes::len);
            if seen > DISCARD_BYTES {
                return;
            }
        }
    };
    let _ = timeout(DISCARD_TIME, reading).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use axum::Router;
    use axum::body::to_bytes;
    use axum::extract::Request;
    use axum::routing::{get, post};
    use http::StatusCode;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::listener::{Listener, ListenerSettings, RunningListener};

    /// Longer than all that a test waits for.
    const PATIENCE: Duration = Duration::from_secs(30);
    /// Bytes that the buffers of a connection do not hold.
    const LARGE: usize = DISCARD_BYTES / 2;
    const HEALTH: &[u8] = b"GET / HTTP/1.1\r\nhost: w\r\nconnection: close\r\n\r\n";

    async fn serve() -> RunningListener {
        let routes = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/unread", post(|| async { StatusCode::TOO_MANY_REQUESTS }))
            .route("/begun", post(begin));
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), ListenerSettings::default());
        listener.await.unwrap().serve(routes)
    }

    /// Reads the first frame only.
    async fn begin(request: Request) -> StatusCode {
        let mut body = request.into_body();
        let _ = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        StatusCode::PAYLOAD_TOO_LARGE
    }

    async fn connect(running: &RunningListener) -> TcpStream {
        TcpStream::connect(running.address().unwrap()).await.unwrap()
    }

    /// Everything that the client hears after it has sent everything.
    async fn exchange(running: &RunningListener, parts: &[&[u8]]) -> String {
        let mut stream = connect(running).await;
        let talking = async {
            for part in parts {
                stream.write_all(part).await.expect("the body is taken");
            }
            let mut received = String::new();
            stream.read_to_string(&mut received).await.expect("the connection ends in order");
            received
        };
        timeout(PATIENCE, talking).await.unwrap()
    }

    fn head(path: &str, more: &str) -> String {
        format!("POST {path} HTTP/1.1\r\nhost: w\r\n{more}\r\n")
    }

    #[tokio::test]
    async fn a_client_that_sends_a_body_that_nobody_reads_hears_the_response_and_goes_on() {
        let running = serve().await;
        for (path, status) in [("/unread", "429"), ("/begun", "413")] {
            let head = head(path, &format!("content-length: {LARGE}\r\n"));
            let received = exchange(&running, &[head.as_bytes(), &vec![b'a'; LARGE], HEALTH]).await;
            assert!(received.starts_with(&format!("HTTP/1.1 {status}")), "{received}");
            assert!(received.ends_with("here"), "the connection serves on: {received}");
        }
        running.cut().await;
    }

    #[tokio::test]
    async fn a_body_in_chunks_that_nobody_reads_ends_where_it_ends() {
        let running = serve().await;
        let head = head("/unread", "transfer-encoding: chunked\r\n");
        let chunk = format!("{LARGE:x}\r\n{}\r\n0\r\n\r\n", "a".repeat(LARGE));
        let received = exchange(&running, &[head.as_bytes(), chunk.as_bytes(), HEALTH]).await;
        assert!(received.starts_with("HTTP/1.1 429") && received.ends_with("here"), "{received}");
        running.cut().await;
    }

    #[tokio::test]
    async fn the_rest_of_a_body_beyond_the_limit_is_not_taken_for_requests() {
        let running = serve().await;
        let requests = HEALTH.repeat(2 * DISCARD_BYTES / HEALTH.len());
        let head = head("/unread", &format!("content-length: {}\r\n", requests.len()));
        let (mut reading, mut writing) = connect(&running).await.into_split();
        let sending = async {
            writing.write_all(head.as_bytes()).await.unwrap();
            writing.write_all(&requests).await.expect_err("the connection ends before the body")
        };
        let mut received = Vec::new();
        // The connection may end with a reset.
        let talking = async { tokio::join!(sending, reading.read_to_end(&mut received)) };
        drop(timeout(PATIENCE, talking).await.expect("the connection ends"));
        let received = String::from_utf8(received).unwrap();
        assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{received}");
        assert!(received.starts_with("HTTP/1.1 429"), "{received}");
        running.cut().await;
    }

    #[tokio::test]
    async fn the_response_does_not_wait_for_a_body_that_does_not_come() {
        let running = serve().await;
        let mut stream = connect(&running).await;
        stream.write_all(head("/unread", "content-length: 10\r\n").as_bytes()).await.unwrap();
        let mut first = [0; 12];
        let hearing = timeout(DISCARD_TIME / 2, stream.read_exact(&mut first));
        hearing.await.expect("it comes at once").unwrap();
        assert_eq!(&first, b"HTTP/1.1 429");
        let mut rest = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the connection ends").unwrap();
        running.cut().await;
    }

    #[tokio::test]
    async fn a_client_that_asks_first_and_is_refused_is_not_asked_for_its_body() {
        let running = serve().await;
        let head = head("/unread", "content-length: 10\r\nexpect: 100-continue\r\n");
        let received = exchange(&running, &[head.as_bytes()]).await;
        assert!(received.starts_with("HTTP/1.1 429"), "not 100: {received}");
        running.cut().await;
    }

    #[tokio::test]
    async fn a_client_that_expects_anything_else_sends_its_body_and_goes_on() {
        let running = serve().await;
        let head = head("/unread", &format!("content-length: {LARGE}\r\nexpect: 200-ok\r\n"));
        let received = exchange(&running, &[head.as_bytes(), &vec![b'a'; LARGE], HEALTH]).await;
        assert!(received.starts_with("HTTP/1.1 429") && received.ends_with("here"), "{received}");
        running.cut().await;
    }

    #[tokio::test]
    async fn a_stop_does_not_wait_for_the_rest_of_a_body() {
        let running = serve().await;
        let mut stream = connect(&running).await;
        stream.write_all(head("/unread", "content-length: 10\r\n").as_bytes()).await.unwrap();
        stream.readable().await.unwrap();
        let stopping = timeout(DISCARD_TIME / 2, running.drain());
        stopping.await.expect("it stops at once");
    }

    #[tokio::test]
    async fn a_body_that_is_read_arrives_whole() {
        let routes = Router::new().route(
            "/",
            post(|request: Request| async {
                to_bytes(request.into_body(), LARGE).await.unwrap().len().to_string()
            }),
        );
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), ListenerSettings::default());
        let running = listener.await.unwrap().serve(routes);
        let head = head("/", &format!("content-length: {LARGE}\r\nconnection: close\r\n"));
        let received = exchange(&running, &[head.as_bytes(), &vec![b'a'; LARGE]]).await;
        assert!(received.ends_with(&LARGE.to_string()), "{received}");
        running.cut().await;
    }
}
