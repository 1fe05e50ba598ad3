//! One MCP client on standard input and output. Each line of the input becomes a request to the front end, and each
//! message of an answer becomes a line of the output.
//!
//! The client is thus handled like one over Streamable HTTP: in the legacy eras it has an MCP session, with a stream for
//! the server's own messages. In the modern era a client over HTTP cancels a request by a disconnect; here it sends
//! `notifications/cancelled`, which ends the request in the same way. A client over HTTP opens another session once its
//! server has lost the first; here it starts another process, since this one ends. A client over HTTP asks for the rest of a
//! stream that its server has ended before the answer; here the answer is waited for, and the client does not notice.
//!
//! Not here: decisions, and servers on stdio (`upstream::stdio`).

mod answer;
mod open_requests;
mod request;
mod stream_position;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderValue, StatusCode};
use serving::limits::LOCAL_READ_TIME;
use serving::signals::all_read;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::frame::error_code::PARSE_ERROR;
use crate::frame::{Frame, Kind, NOTIFICATIONS_CANCELLED, TOOLS_LIST, reply};
use crate::front::Front;
use crate::limits::{CALL_TIME, CHILD_QUEUE, MAX_LINE_BYTES};
use crate::lines::{Line, read_line, skip_line};
use crate::relay::Response;
use crate::upstream::stdio::ToolHeaders;
use crate::upstream::text::RpcMessage;
use answer::MessageReader;
use open_requests::{EndSignals, OpenRequests, RequestKey};
use request::{McpSession, is_modern};

/// The client of one route.
#[derive(Clone)]
pub struct StdioClient {
    front: Arc<Front>,
    route: Arc<str>,
    session: Arc<Mutex<McpSession>>,
    /// The tools that the client has listed, whose calls may have headers for their parameters.
    tools: Arc<Mutex<ToolHeaders>>,
    answer_time: Duration,
    open: OpenRequests,
    /// Cancelled once the server has lost the session.
    lost: CancellationToken,
}

impl StdioClient {
    /// A client that uses this route of the front end.
    pub fn new(front: Arc<Front>, route: &str) -> Self {
        let (session, tools, lost) = (Arc::default(), Arc::default(), CancellationToken::new());
        let open = OpenRequests::default();
        Self { front, route: route.into(), session, tools, answer_time: CALL_TIME, open, lost }
    }

    /// Sets the longest time from the early end of an answer to its real one, if its server lets the client ask for the rest
    /// (default [`CALL_TIME`]).
    #[must_use]
    pub fn waiting(mut self, answer_time: Duration) -> Self {
        self.answer_time = answer_time;
        self
    }

    /// Serves the client until its input ends, its output is closed, its server has lost its MCP session, or `stop`
    /// resolves, and ends that session. After `stop` the last messages wait at most [`LOCAL_READ_TIME`] for the client.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub async fn serve(
        self,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let (sender, receiver) = mpsc::channel(CHILD_QUEUE);
        let mut written = tokio::spawn(write(output, receiver));
        let (over, stop) = (CancellationToken::new(), stop.shared());
        let served = async {
            let ended = tokio::select! {
                ended = self.messages(input, &sender, &over) => ended,
                () = sender.closed() => Ok(()),
            };
            self.end_session(&over).await;
            ended
        };
        let ended = tokio::select! {
            ended = served => ended,
            () = stop.clone() => {
                let _ = tokio::time::timeout(LOCAL_READ_TIME, self.end_session(&over)).await;
                Ok(())
            }
        };
        drop(sender);
        if !all_read(&mut written, stop).await {
            written.abort();
        }
        ended
    }

    /// Ends the client's MCP session, unless that was begun already, and the stream of the server's own messages.
    async fn end_session(&self, over: &CancellationToken) {
        over.cancel();
        let end = self.session().end(&self.route);
        if let Some(request) = end {
            self.front.answer_local(request).await;
        }
    }

    /// Handles the messages of the input in their order. Requests run side by side, and at the end of the input those in
    /// flight are waited for, but for subscriptions. In a session that is lost, what the client has sent already is still
    /// answered.
    async fn messages(
        &self,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: &mpsc::Sender<Bytes>,
        over: &CancellationToken,
    ) -> std::io::Result<()> {
        let (lines, mut received) = mpsc::channel(CHILD_QUEUE);
        let reading = tokio::spawn(read(input, lines));
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(ended) = running.next() => self.open.close(ended),
                line = received.recv() => match line {
                    None => break,
                    Some(Err(TooLong)) => too_long(output).await,
                    Some(Ok(line)) => match Frame::parse(line.clone()) {
                        Ok(frame) if frame.kind() == Kind::Request && !request::is_initialize(&frame) => {
                            let signals = self.open.open(&frame);
                            running.push(self.request(frame, output, signals));
                        }
                        Ok(frame) if frame.method() == Some(NOTIFICATIONS_CANCELLED) => {
                            self.cancel(frame, output, over).await;
                        }
                        Ok(frame) => self.in_order(frame, output, over).await,
                        Err(error) => {
                            let words = error.to_string();
                            send(output, reply::error(error.id(), error.code(), &words, None)).await;
                        }
                    }
                },
                () = self.lost.cancelled(), if running.is_empty() => {
                    reading.abort();
                    break;
                }
            }
        }
        self.open.cancel_subscriptions();
        while running.next().await.is_some() {}
        reading.await.unwrap_or(Ok(()))
    }

    /// Sends a message to the front end, and notes whether its answer says that the server has lost the client's session.
    async fn post(&self, message: &Frame) -> Response {
        let (mut request, is_in_session) = {
            let session = self.session();
            (session.post(&self.route, message), session.has_id() && !is_modern(message))
        };
        request.headers_mut().extend(self.parameter_headers(message));
        let response = self.front.answer_local(request).await;
        if is_in_session && response.status() == StatusCode::NOT_FOUND && !self.lost.is_cancelled() {
            tracing::warn!(route = %self.route, "the server has lost the client's session; this process ends");
            self.lost.cancel();
        }
        response
    }

    /// Handles a request until it is answered or cancelled, and returns its key. A modern one that is cancelled has no answer,
    /// and of a legacy one the stream is read on, but not resumed.
    async fn request(
        &self,
        frame: Frame,
        output: &mpsc::Sender<Bytes>,
        signals: EndSignals,
    ) -> Option<RequestKey> {
        let cancelled = signals.cancelled.clone();
        let answered = async {
            let response = self.post(&frame).await;
            let passed = |message: Bytes| {
                if frame.method() == Some(TOOLS_LIST) {
                    self.learn_tools(&message);
                }
                send(output, message)
            };
            let resume = |last_event| self.resume(&frame, last_event);
            let reader = MessageReader::new(frame.id(), &self.open, passed);
            reader.answer(response, (self.answer_time, signals), resume).await;
        };
        tokio::select! {
            biased;
            () = cancelled.cancelled(), if is_modern(&frame) => {}
            () = answered => {}
        }
        RequestKey::of(&frame)
    }

    /// Asks for the rest of the stream that answers this message, after an event of it. `None` in the modern era and without
    /// a session, where nothing can be resumed.
    async fn resume(&self, message: &Frame, last_event: HeaderValue) -> Option<Response> {
        match is_modern(message) {
            true => None,
            false => self.stream(Some(last_event)).await,
        }
    }

    /// Asks for a stream: for the rest of one after this event, or for that of the server's own messages. `None` without a
    /// session.
    async fn stream(&self, last_event: Option<HeaderValue>) -> Option<Response> {
        let request = self.session().stream(&self.route, last_event)?;
        Some(self.front.answer_local(request).await)
    }

    /// Handles a cancellation: ends the modern request that it names, or else passes it to a server of the older revisions.
    /// One of a modern request that has ended already cancels nothing.
    async fn cancel(&self, cancellation: Frame, output: &mpsc::Sender<Bytes>, over: &CancellationToken) {
        let is_for_server = !self.open.cancel(&cancellation) && !is_modern(&cancellation);
        if is_for_server && self.session().is_open() {
            self.in_order(cancellation, output, over).await;
        }
    }

    /// Handles a message that must have been received before the next one is: `initialize`, a notification or a
    /// response.
    async fn in_order(&self, frame: Frame, output: &mpsc::Sender<Bytes>, over: &CancellationToken) {
        let response = self.post(&frame).await;
        if request::is_initialize(&frame) {
            self.session().opened(response.headers());
            let negotiated = |message: Bytes| {
                self.session().negotiated(&message);
                send(output, message)
            };
            let limit = (self.answer_time, EndSignals::default());
            let resume = |last_event| self.resume(&frame, last_event);
            let reader = MessageReader::new(frame.id(), &self.open, negotiated);
            return reader.answer(response, limit, resume).await;
        }
        let mut reader = MessageReader::new(None, &self.open, |message| send(output, message));
        let _unread = reader.read(response).await;
        if frame.method() == Some("notifications/initialized") {
            tokio::spawn(self.clone().listen(output.clone(), over.clone()));
        }
    }

    /// Forwards the server's own messages, until the server has no such stream or the client is gone.
    async fn listen(self, output: mpsc::Sender<Bytes>, over: CancellationToken) {
        let reader = MessageReader::new(None, &self.open, |message| send(&output, message));
        tokio::select! {
            () = reader.listen(|last_event| self.stream(last_event)) => {}
            () = over.cancelled() => {}
        }
    }

    /// Returns the headers for the parameters of a modern call, which a client over HTTP would send.
    fn parameter_headers(&self, message: &Frame) -> HeaderMap {
        if !message.is_tool_call() || !is_modern(message) {
            return HeaderMap::new();
        }
        let call = RpcMessage::read_bytes(message.text());
        call.map(|call| self.tools().of_call(&call)).unwrap_or_default()
    }

    fn learn_tools(&self, message: &Bytes) {
        if let Some(page) = RpcMessage::read_bytes(message) {
            self.tools().learn(&page);
        }
    }

    fn tools(&self) -> MutexGuard<'_, ToolHeaders> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, McpSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that is longer than a message may be.
struct TooLong;

async fn read(
    input: impl AsyncRead + Unpin,
    lines: mpsc::Sender<Result<Bytes, TooLong>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(input);
    loop {
        let line = match read_line(&mut reader, MAX_LINE_BYTES).await? {
            Line::End => return Ok(()),
            Line::Whole(line) if line.is_empty() => continue,
            Line::Whole(line) => Ok(line.into()),
            Line::TooLong(_) => {
                skip_line(&mut reader).await?;
                Err(TooLong)
            }
        };
        if lines.send(line).await.is_err() {
            return Ok(());
        }
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

async fn too_long(output: &mpsc::Sender<Bytes>) {
    let words = format!("a message is longer than {MAX_LINE_BYTES} bytes");
    send(output, reply::error(None, PARSE_ERROR, &words, None)).await;
}

/// Queues a message for the client. One for a client that is gone is dropped.
async fn send(output: &mpsc::Sender<Bytes>, message: Bytes) {
    let _gone = output.send(crate::lines::as_line(&message)).await;
}
