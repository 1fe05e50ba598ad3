//! A legacy session: one child process, and the streams on which its client receives messages. [`Stdio`](super::Stdio)
//! opens it with `initialize`, and sends it the client's later requests.
//!
//! A request is open from [`StdioSession::open`], which gives it a stream, until the child answers it, its client
//! cancels it, or it cannot be sent. `routing` knows which requests are open, and `streams` keeps their messages.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use tokio::time::timeout;

use super::child::{Child, Gone, Lines, Program};
use super::routing::{MessageRoute, NotTaken, Routing};
use super::streams::{
    COMMON, EventPosition, NextEvent, NotReadable, SessionStreams, StreamEvent, StreamNo, StreamReader,
};
use crate::frame::error_code;
use crate::limits;
use crate::upstream::answer;
use crate::upstream::text::{Edits, Json, RpcMessage};
use crate::upstream::{AnswerBody, UpstreamAnswer, UpstreamError};

/// A legacy session with its child.
#[derive(Debug)]
pub struct StdioSession {
    child: Child,
    streams: Arc<SessionStreams>,
    routing: Mutex<Routing>,
    /// The agreed protocol revision.
    version: OnceLock<String>,
    used: Mutex<Instant>,
}

/// The result of `initialize`.
pub enum Begun {
    /// The server accepted; its response.
    Ready(Bytes),
    /// The server refused; its response.
    Refused(Bytes),
}

impl StdioSession {
    /// Starts a child, and a task that reads its messages.
    ///
    /// # Errors
    /// If the process does not start.
    pub fn start(program: &Program, name: &Arc<str>) -> std::io::Result<Arc<Self>> {
        let (child, lines) = Child::start(program, name)?;
        let session = Arc::new(Self {
            child,
            streams: Arc::default(),
            routing: Mutex::default(),
            version: OnceLock::new(),
            used: Mutex::new(Instant::now()),
        });
        let reader = ChildReader {
            session: Arc::downgrade(&session),
            streams: Arc::clone(&session.streams),
            name: Arc::clone(name),
        };
        tokio::spawn(reader.read_messages(lines));
        Ok(session)
    }

    /// Sends `initialize`, and waits for its response: a session exists only if the server accepts it.
    ///
    /// # Errors
    /// An [`UpstreamError`] if no response arrives within `INITIALIZE_TIME`.
    pub async fn initialize(&self, message: &RpcMessage<'_>) -> Result<Begun, UpstreamError> {
        let mut reader = self.open(message).await.map_err(|_| gone())?;
        let answer = async {
            loop {
                match reader.next().await {
                    NextEvent::Event(event) if event.is_last => return Ok(event.text),
                    NextEvent::Event(event) => self.streams.send(COMMON, event.text, false).await,
                    NextEvent::End | NextEvent::Broken => return Err(lost()),
                }
            }
        };
        let text = timeout(limits::INITIALIZE_TIME, answer).await.map_err(|_| UpstreamError::TimedOut)??;
        self.streams.remove(reader.stream());
        let Some(response) = RpcMessage::read_bytes(&text) else {
            return Ok(Begun::Refused(text));
        };
        let version = response.at(&["result", "protocolVersion"]).and_then(|version| version.string());
        let accepted = response.get("result").is_some();
        let _ = self.version.set(version.unwrap_or_default());
        Ok(if accepted { Begun::Ready(text) } else { Begun::Refused(text) })
    }

    /// Forwards a request. The answer is an event stream that can be resumed from its start. For a client that does not
    /// accept event streams it is plain JSON, unless other messages precede the response, or it takes longer than
    /// `FIRST_MESSAGE_TIME`.
    ///
    /// # Errors
    /// [`UpstreamError::Lost`] if the child ends before it answers.
    pub async fn request(
        &self,
        message: &RpcMessage<'_>,
        events: bool,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        self.touch();
        let mut reader = match self.open(message).await {
            Ok(reader) => reader,
            Err(PostRefusal::NotTaken(why)) => return Ok(not_taken(why, message)),
            Err(PostRefusal::Gone) => {
                return Ok(answer::no_such_session(message.id().map(Json::raw)).unsent());
            }
        };
        if events {
            return Ok(self.event_stream(reader, None));
        }
        match timeout(limits::FIRST_MESSAGE_TIME, reader.next()).await {
            Err(_) => Ok(self.event_stream(reader, None)),
            Ok(NextEvent::Event(event)) if event.is_last => {
                self.streams.remove(reader.stream());
                Ok(answer::json(StatusCode::OK, event.text))
            }
            Ok(NextEvent::Event(event)) => Ok(self.event_stream(reader, Some(sse_event(&event)))),
            Ok(NextEvent::End | NextEvent::Broken) => Err(lost()),
        }
    }

    /// Forwards a notification, or a response to a request of the server.
    pub async fn notify(&self, message: &RpcMessage<'_>) -> UpstreamAnswer {
        self.touch();
        let removed = self.routing().note_cancellation(message);
        if let Some(stream) = removed {
            self.streams.remove(stream);
        }
        match self.child.write(message.text().as_bytes()).await {
            Ok(()) => answer::empty(StatusCode::ACCEPTED),
            Err(Gone) => answer::no_such_session(None),
        }
    }

    /// Answers a GET: with the common stream, or with the stream that `Last-Event-ID` resumes.
    pub fn listen(&self, last_event: Option<&str>) -> UpstreamAnswer {
        self.touch();
        let reader = match last_event {
            None => self.streams.read(COMMON),
            Some(text) => EventPosition::read(text)
                .ok_or(NotReadable::Unknown)
                .and_then(|position| self.streams.resume(position)),
        };
        let bad = |why| answer::error(StatusCode::BAD_REQUEST, None, error_code::TRANSPORT_REFUSAL, why);
        match reader {
            Ok(reader) if last_event.is_none() => self.event_stream(reader, None),
            Ok(reader) => answer::events(as_events(reader, Vec::new())),
            Err(NotReadable::HasReader) => answer::error(
                StatusCode::CONFLICT,
                None,
                error_code::TRANSPORT_REFUSAL,
                "this session has a stream of events already",
            ),
            Err(NotReadable::Unknown) => bad("Last-Event-ID names no event of this session"),
            Err(NotReadable::Dropped) => bad("the events after Last-Event-ID are not kept any more"),
        }
    }

    /// Returns the agreed protocol revision.
    pub fn version(&self) -> Option<&str> {
        self.version.get().map(String::as_str)
    }

    /// Ends the child.
    pub fn end(&self) {
        self.child.stop();
    }

    /// Returns whether the child still accepts messages.
    pub fn is_alive(&self) -> bool {
        self.child.is_alive()
    }

    /// Waits until the child does not accept messages any more. The future does not keep the session alive.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.child.stopped()
    }

    /// Waits until the process has exited.
    pub async fn gone(&self) {
        self.child.gone().await;
    }

    /// Returns whether the session was unused for longer than [`limits::SESSION_IDLE`]. A request that is open until
    /// then is one that the server does not answer and whose client has gone.
    pub fn is_idle(&self) -> bool {
        self.unused_for().is_some_and(|unused| unused > limits::SESSION_IDLE)
    }

    /// The time for which the session was unused. `None` while a request is open or a stream is read.
    pub fn idle_for(&self) -> Option<Duration> {
        self.unused_for().filter(|_| !self.routing().is_busy())
    }

    /// The time since the client's last message, or since it last read a stream. `None` while a stream is read.
    fn unused_for(&self) -> Option<Duration> {
        let silent = self.last_used().elapsed();
        self.streams.time_without_reader().map(|unread| unread.min(silent))
    }

    /// The time of the client's last message.
    pub fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a request: gives it a stream, and sends it to the child.
    async fn open(&self, message: &RpcMessage<'_>) -> Result<StreamReader, PostRefusal> {
        let stream = {
            let mut routing = self.routing();
            routing.may_open(message).map_err(PostRefusal::NotTaken)?;
            let stream = self.streams.open();
            routing.opened(stream, message);
            stream
        };
        let mut unsent = UnsentRequest { session: self, stream, is_sent: false };
        let reader = self.streams.read(stream).map_err(|_| PostRefusal::Gone)?;
        self.child.write(message.text().as_bytes()).await.map_err(|Gone| PostRefusal::Gone)?;
        unsent.is_sent = true;
        Ok(reader)
    }

    /// The answer with this stream: an event that was already read comes first, and before it, since revision
    /// 2025-11-25, a priming event.
    fn event_stream(&self, reader: StreamReader, first: Option<Bytes>) -> UpstreamAnswer {
        let is_primed = self.version().is_some_and(|version| version >= PRIMING_SINCE);
        let position = EventPosition { stream: reader.stream(), number: 0 };
        let start = (is_primed && position.stream != COMMON).then(|| answer::priming(&position.to_string()));
        answer::events(as_events(reader, start.into_iter().chain(first).collect()))
    }

    /// Marks the session as used now.
    pub fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn routing(&self) -> MutexGuard<'_, Routing> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first revision whose clients understand the priming event without message. Revisions are dates, so their text
/// order is their order.
const PRIMING_SINCE: &str = "2025-11-25";

/// A request that is not sent to the child yet. If it is dropped before that, its stream is removed.
struct UnsentRequest<'a> {
    session: &'a StdioSession,
    stream: StreamNo,
    is_sent: bool,
}

impl Drop for UnsentRequest<'_> {
    fn drop(&mut self) {
        if !self.is_sent {
            self.session.routing().closed(self.stream);
            self.session.streams.remove(self.stream);
        }
    }
}

enum PostRefusal {
    NotTaken(NotTaken),
    Gone,
}

/// The task that reads a child's messages and puts them on the streams. It holds the session weakly: when the session
/// is dropped, its child ends.
struct ChildReader {
    session: std::sync::Weak<StdioSession>,
    streams: Arc<SessionStreams>,
    name: Arc<str>,
}

impl ChildReader {
    async fn read_messages(self, mut lines: Lines) {
        while let Some(line) = lines.recv().await {
            let Some(message) = RpcMessage::read_bytes(&line) else {
                tracing::debug!(server = %self.name, "a line that is not a message");
                continue;
            };
            let route = match self.session.upgrade() {
                Some(session) => session.routing().route(&message, self.streams.has_common_reader()),
                None => break,
            };
            match route {
                MessageRoute::Answer(stream, id) => {
                    self.streams.send(stream, with_id(&message, &id, &line), true).await;
                }
                MessageRoute::On(stream) => self.streams.send(stream, line.clone(), false).await,
                MessageRoute::Nowhere => {
                    tracing::debug!(server = %self.name, "a response without an open request")
                }
            }
        }
        self.streams.set_child_ended();
    }
}

/// The response with the id as the client wrote it, even if the server used another spelling.
fn with_id(message: &RpcMessage<'_>, id: &str, line: &Bytes) -> Bytes {
    match message.id() {
        Some(written) if written.raw() != id => {
            let mut edits = Edits::of(message.text());
            edits.replace(written, id);
            edits.done()
        }
        _ => line.clone(),
    }
}

fn as_events(reader: StreamReader, first: Vec<Bytes>) -> AnswerBody {
    let first = stream::iter(first.into_iter().map(Ok));
    let rest = stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match timeout(limits::KEEP_ALIVE, reader.next()).await {
            Err(_) => Some((Ok(answer::ALIVE), Some(reader))),
            Ok(NextEvent::Event(event)) => Some((Ok(sse_event(&event)), (!event.is_last).then_some(reader))),
            Ok(NextEvent::End) => None,
            Ok(NextEvent::Broken) => Some((Err(lost()), None)),
        }
    });
    first.chain(rest).boxed()
}

fn sse_event(event: &StreamEvent) -> Bytes {
    answer::event(Some(&event.position.to_string()), &event.text)
}

fn not_taken(why: NotTaken, message: &RpcMessage<'_>) -> UpstreamAnswer {
    let id = message.id().map(Json::raw);
    let invalid = |id, why| answer::error(StatusCode::BAD_REQUEST, id, error_code::INVALID_REQUEST, why);
    match why {
        NotTaken::SameId => invalid(id, "a request with this id is open in this session").unsent(),
        NotTaken::TooMany => answer::busy(id, "too many requests are open in this session"),
        NotTaken::NoId => invalid(None, "the id is not an id").unsent(),
    }
}

fn gone() -> UpstreamError {
    UpstreamError::NeverSent("the server's process has ended".to_owned())
}

fn lost() -> UpstreamError {
    UpstreamError::Lost("the server's process ended before it answered".to_owned())
}
