//! A legacy session: one child, and the streams by which its client hears it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use tokio::time::timeout;

use super::child::{Child, Gone, Lines, Program};
use super::routing::{NotTaken, Route, Routing};
use super::streams::{COMMON, Next, NoReader, Place, Reader, StreamNo, Streams};
use crate::limits;
use crate::upstream::answer;
use crate::upstream::text::{Edits, Json, Message};
use crate::upstream::{Answer, AnswerBody, UpstreamError};

/// One session.
#[derive(Debug)]
pub struct Session {
    child: Child,
    streams: Arc<Streams>,
    routing: Mutex<Routing>,
    /// The revision that was agreed on.
    version: OnceLock<String>,
    used: Mutex<Instant>,
}

/// What came of `initialize`.
pub enum Begun {
    /// The server is ready, and said this.
    Ready(Bytes),
    /// It refused, and said this.
    Refused(Bytes),
}

impl Session {
    /// Starts a child. What it says is heard from now on.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(program: &Program, name: &Arc<str>) -> std::io::Result<Arc<Self>> {
        let (child, lines) = Child::start(program, name)?;
        let session = Arc::new(Self {
            child,
            streams: Arc::default(),
            routing: Mutex::default(),
            version: OnceLock::new(),
            used: Mutex::new(Instant::now()),
        });
        let listener = Listener {
            session: Arc::downgrade(&session),
            streams: Arc::clone(&session.streams),
            name: Arc::clone(name),
        };
        tokio::spawn(listener.hear(lines));
        Ok(session)
    }

    /// `initialize`, which is answered whole: only a server that accepted it has a session.
    ///
    /// # Errors
    /// If no answer comes.
    pub async fn initialize(&self, message: &Message<'_>) -> Result<Begun, UpstreamError> {
        let (stream, mut reader) = self.open(message).await.map_err(|_| gone())?;
        let answer = async {
            loop {
                match reader.next().await {
                    Next::Event(event) if event.last => return Ok(event.text),
                    Next::Event(event) => self.streams.say(COMMON, event.text, false).await,
                    Next::End | Next::Broken => return Err(lost()),
                }
            }
        };
        let text = timeout(limits::INITIALIZE_TIME, answer).await.map_err(|_| UpstreamError::TimedOut)??;
        self.streams.forget(stream);
        let Some(said) = std::str::from_utf8(&text).ok().and_then(Message::read) else {
            return Ok(Begun::Refused(text));
        };
        let version = said.at(&["result", "protocolVersion"]).and_then(|version| version.string());
        let accepted = said.get("result").is_some();
        let _ = self.version.set(version.unwrap_or_default());
        Ok(if accepted { Begun::Ready(text) } else { Begun::Refused(text) })
    }

    /// A request: its answer is a stream of events, which can be resumed from the start. For a client that has no use for
    /// events it is JSON, unless there is more to say than the answer, or it takes long.
    ///
    /// # Errors
    /// If the child is gone before it answers.
    pub async fn request(&self, message: &Message<'_>, events: bool) -> Result<Answer, UpstreamError> {
        self.touch();
        let (stream, mut reader) = match self.open(message).await {
            Ok(open) => open,
            Err(Refusal::NotTaken(why)) => return Ok(not_taken(why, message)),
            Err(Refusal::Gone) => return Ok(answer::no_such_session(message.id().map(Json::raw))),
        };
        if events {
            return Ok(self.stream(reader, None));
        }
        let first = timeout(limits::FIRST_MESSAGE_TIME, reader.next()).await.ok();
        match first {
            Some(Next::Event(event)) if event.last => {
                self.streams.forget(stream);
                Ok(answer::json(StatusCode::OK, event.text))
            }
            Some(Next::End | Next::Broken) => Err(lost()),
            Some(Next::Event(event)) => {
                Ok(self.stream(reader, Some(answer::event(Some(&event.place.to_string()), &event.text))))
            }
            None => Ok(self.stream(reader, None)),
        }
    }

    /// A notification, or an answer to a question of the server.
    pub async fn tell(&self, message: &Message<'_>) -> Answer {
        self.touch();
        match self.child.write(message.text().as_bytes()).await {
            Ok(()) => answer::empty(StatusCode::ACCEPTED),
            Err(Gone) => answer::no_such_session(None),
        }
    }

    /// A GET: the common stream, or the one that is resumed.
    pub fn listen(&self, last_event: Option<&str>) -> Answer {
        self.touch();
        let reader = match last_event {
            None => self.streams.read(COMMON),
            Some(text) => {
                Place::read(text).ok_or(NoReader::Unknown).and_then(|place| self.streams.resume(place))
            }
        };
        let bad = |why| answer::error(StatusCode::BAD_REQUEST, None, answer::NO_SESSION, why);
        match reader {
            Ok(reader) if last_event.is_none() => self.stream(reader, None),
            Ok(reader) => answer::events(as_events(reader, Vec::new())),
            Err(NoReader::Taken) => answer::error(
                StatusCode::CONFLICT,
                None,
                answer::NO_SESSION,
                "this session has a stream of events already",
            ),
            Err(NoReader::Unknown) => bad("Last-Event-ID names no event of this session"),
            Err(NoReader::NotKept) => bad("the events after Last-Event-ID are not kept any more"),
        }
    }

    /// Ends the child.
    pub fn end(&self) {
        self.child.stop();
    }

    /// Whether the child can still be spoken to.
    pub fn is_alive(&self) -> bool {
        self.child.is_alive()
    }

    /// Becomes ready when the child can no more be spoken to. Does not keep it.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.child.stopped()
    }

    /// Becomes ready when the process is gone.
    pub async fn gone(&self) {
        self.child.gone().await;
    }

    /// Whether nobody has wanted anything of it for so long that its child may go.
    pub fn is_idle(&self) -> bool {
        self.idle_for().is_some_and(|unused| unused > limits::SESSION_IDLE)
    }

    /// For how long nobody has wanted anything of it; none if a request is open, or somebody reads.
    pub fn idle_for(&self) -> Option<Duration> {
        let unused = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        (!self.routing().is_busy() && !self.streams.somebody_reads()).then_some(unused)
    }

    async fn open(&self, message: &Message<'_>) -> Result<(StreamNo, Reader), Refusal> {
        let stream = {
            let mut routing = self.routing();
            routing.may_open(message).map_err(Refusal::NotTaken)?;
            let stream = self.streams.open();
            routing.opened(stream, message);
            stream
        };
        let mut unsent = Unsent(Some((self, stream)));
        let reader = self.streams.read(stream).map_err(|_| Refusal::Gone)?;
        self.child.write(message.text().as_bytes()).await.map_err(|Gone| Refusal::Gone)?;
        unsent.0 = None;
        Ok((stream, reader))
    }

    /// The stream as it is read, first what was read of it already. Where the revision has it, an event without message
    /// comes before everything.
    fn stream(&self, reader: Reader, first: Option<Bytes>) -> Answer {
        let primed = self.version.get().is_some_and(|version| &**version >= PRIMING_SINCE);
        let place = Place { stream: reader.place().stream, number: 0 };
        let start = (primed && place.stream != COMMON).then(|| answer::priming(&place.to_string()));
        answer::events(as_events(reader, start.into_iter().chain(first).collect()))
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn routing(&self) -> MutexGuard<'_, Routing> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first revision whose clients understand an event without a message. Revisions are dates: their order is that of
/// their text.
const PRIMING_SINCE: &str = "2025-11-25";

/// A request that was not handed to the child yet: giving up leaves no trace.
struct Unsent<'a>(Option<(&'a Session, StreamNo)>);

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if let Some((session, stream)) = self.0 {
            session.routing().closed(stream);
            session.streams.forget(stream);
        }
    }
}

enum Refusal {
    NotTaken(NotTaken),
    Gone,
}

/// Hears a child and puts what it says on the streams. Holds no session alive: who forgets a session ends its child.
struct Listener {
    session: std::sync::Weak<Session>,
    streams: Arc<Streams>,
    name: Arc<str>,
}

impl Listener {
    async fn hear(self, mut lines: Lines) {
        while let Some(line) = lines.recv().await {
            let Some(message) = std::str::from_utf8(&line).ok().and_then(Message::read) else {
                tracing::debug!(server = %self.name, "a line that is no message");
                continue;
            };
            let route = match self.session.upgrade() {
                Some(session) => session.routing().route(&message, self.streams.somebody_listens()),
                None => break,
            };
            match route {
                Route::Answer(stream, id) => {
                    self.streams.say(stream, with_id(&message, &id, &line), true).await;
                }
                Route::On(stream) => self.streams.say(stream, line.clone(), false).await,
                Route::Nowhere => tracing::debug!(server = %self.name, "an answer that nobody waits for"),
            }
        }
        self.streams.break_off();
    }
}

/// The answer with its id as the request wrote it, whatever the server made of the spelling.
fn with_id(message: &Message<'_>, id: &str, line: &Bytes) -> Bytes {
    match message.id() {
        Some(written) if written.raw() != id => {
            let mut edits = Edits::of(message.text());
            edits.replace(written, id);
            edits.done()
        }
        _ => line.clone(),
    }
}

fn as_events(reader: Reader, first: Vec<Bytes>) -> AnswerBody {
    let first = stream::iter(first.into_iter().map(Ok));
    let rest = stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match timeout(limits::KEEP_ALIVE, reader.next()).await {
            Err(_) => Some((Ok(answer::ALIVE), Some(reader))),
            Ok(Next::Event(event)) => {
                let reader = (!event.last).then_some(reader);
                Some((Ok(answer::event(Some(&event.place.to_string()), &event.text)), reader))
            }
            Ok(Next::End) => None,
            Ok(Next::Broken) => Some((Err(lost()), None)),
        }
    });
    first.chain(rest).boxed()
}

fn not_taken(why: NotTaken, message: &Message<'_>) -> Answer {
    let id = message.id().map(Json::raw);
    match why {
        NotTaken::SameId => answer::error(
            StatusCode::BAD_REQUEST,
            id,
            answer::INVALID_REQUEST,
            "a request with this id is open in this session",
        ),
        NotTaken::TooMany => answer::busy(id, "too many requests are open in this session"),
        NotTaken::NoId => {
            answer::error(StatusCode::BAD_REQUEST, None, answer::INVALID_REQUEST, "the id is no id")
        }
    }
}

fn gone() -> UpstreamError {
    UpstreamError::NeverSent("the server's process has ended".to_owned())
}

fn lost() -> UpstreamError {
    UpstreamError::Lost("the server's process ended before it answered".to_owned())
}
