//! The one child that all modern requests share.
//!
//! There is no session in this era: whatever a request needs, it carries. So one process serves everybody, and each
//! request gets an id of ours on the way there and its own back, as do its progress token and the subscription that it
//! opens: two clients may use the same ones. Disconnecting is cancelling, and becomes `notifications/cancelled`.
//!
//! A message that says of itself to whom it belongs goes there. A log message does not say so: it goes to the one open
//! request that asked for log messages, and if there are several to none of them, as it may not be theirs to see.
//!
//! Whether the program speaks this era is asked once, with a `server/discover` of our own. If it does not, its error is
//! what a client gets, which then knows that it has to `initialize`.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, StatusCode};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::catalog::{self, Catalog};
use super::child::{Child, Gone, Lines, Program};
use super::mirrors::{self, Declared};
use crate::limits;
use crate::upstream::answer;
use crate::upstream::text::{Edits, Json, Kind, Message, meta};
use crate::upstream::{Answer, AnswerBody, UpstreamError};

/// The child, if there is one, and what is known about its program.
#[derive(Debug)]
pub struct Shared {
    program: Program,
    name: Arc<str>,
    state: tokio::sync::Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Arc<Running>>,
    starts: VecDeque<Instant>,
    era: Era,
}

#[derive(Clone, Debug, Default)]
enum Era {
    #[default]
    Unknown,
    Modern,
    /// It answered `server/discover` with this error, or not at all.
    Legacy(Option<Bytes>),
    /// It ended instead of answering. Some legacy servers do; but it may be ill, and is asked again later.
    Ended(Instant),
}

impl Shared {
    /// None runs yet.
    pub fn new(program: Program, name: Arc<str>) -> Self {
        Self { program, name, state: tokio::sync::Mutex::default() }
    }

    /// Whether the program speaks the revision without sessions. Starts it to ask.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn is_modern(&self) -> Result<bool, UpstreamError> {
        Ok(matches!(self.get().await?, Found::Modern(_)))
    }

    /// A request.
    ///
    /// # Errors
    /// If the child does not start, or is gone before it answers.
    pub async fn request(&self, headers: &HeaderMap, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let running = match self.get().await? {
            Found::Modern(running) => running,
            Found::Legacy(said) => return Ok(refused(message, said.as_ref())),
        };
        if let Err(refusal) = mirrors::check(headers, message) {
            return Ok(*refusal);
        }
        if mirrors::may_have_parameters(headers, message) {
            let tool = message.param("name").and_then(Json::string).unwrap_or_default();
            let declared = running.declared(&tool, message).await;
            if let Err(refusal) = mirrors::check_parameters(&declared, headers, message) {
                return Ok(*refusal);
            }
        }
        running.request(message).await
    }

    /// A notification. The only one that the revision knows is for other transports, and would name an id that is not
    /// the child's.
    ///
    /// # Errors
    /// If the child does not start.
    pub async fn tell(&self, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let is_for_others = message.method().as_deref() == Some("notifications/cancelled");
        if !is_for_others && let Found::Modern(running) = self.get().await? {
            let sent = running.child.write(message.text().as_bytes()).await;
            sent.map_err(|Gone| UpstreamError::NeverSent(ENDED.to_owned()))?;
        }
        Ok(answer::empty(StatusCode::ACCEPTED))
    }

    /// Ends the child, and is ready when it is gone.
    pub async fn stop(&self) {
        let running = self.state.lock().await.running.take();
        if let Some(running) = running {
            running.child.stop();
            running.child.gone().await;
        }
    }

    async fn get(&self) -> Result<Found, UpstreamError> {
        let mut state = self.state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|running| running.child.is_alive()) {
            return Ok(Found::Modern(Arc::clone(running)));
        }
        match &state.era {
            Era::Legacy(said) => return Ok(Found::Legacy(said.clone())),
            Era::Ended(when) if when.elapsed() < limits::RESTART_WINDOW => return Ok(Found::Legacy(None)),
            Era::Unknown | Era::Modern | Era::Ended(_) => {}
        }
        state.running = None;
        let running = self.start(&mut state)?;
        if !matches!(state.era, Era::Modern) {
            state.era = running.ask().await;
        }
        match &state.era {
            Era::Legacy(said) => Ok(Found::Legacy(said.clone())),
            Era::Ended(_) => Ok(Found::Legacy(None)),
            Era::Modern | Era::Unknown => {
                state.running = Some(Arc::clone(&running));
                Ok(Found::Modern(running))
            }
        }
    }

    fn start(&self, state: &mut State) -> Result<Arc<Running>, UpstreamError> {
        let never = |why: String| UpstreamError::NeverSent(why);
        while state.starts.front().is_some_and(|start| start.elapsed() > limits::RESTART_WINDOW) {
            state.starts.pop_front();
        }
        if state.starts.len() >= limits::RESTARTS {
            return Err(never(format!("{}: its process ends again and again", self.name)));
        }
        state.starts.push_back(Instant::now());
        let started = Child::start(&self.program, &self.name);
        let (child, lines) =
            started.map_err(|error| never(format!("{} does not start: {error}", self.name)))?;
        let running =
            Arc::new(Running { child, waiting: Mutex::default(), catalog: tokio::sync::Mutex::default() });
        tokio::spawn(hear(Arc::downgrade(&running), lines, Arc::clone(&self.name)));
        Ok(running)
    }
}

enum Found {
    Modern(Arc<Running>),
    Legacy(Option<Bytes>),
}

/// What a client that speaks this era gets from a server that does not: to `server/discover` the server's own words.
fn refused(message: &Message<'_>, said: Option<&Bytes>) -> Answer {
    let id = message.id().map(Json::raw);
    let error = said
        .filter(|_| message.method().as_deref() == Some("server/discover"))
        .and_then(|said| std::str::from_utf8(said).ok())
        .and_then(Message::read);
    if let (Some(error), Some(id)) = (error, message.id()) {
        let mut edits = Edits::of(error.text());
        if let Some(ours) = error.id() {
            edits.replace(ours, id.raw());
        }
        return answer::json(answer::modern_status(&error), edits.done());
    }
    answer::error(
        StatusCode::BAD_REQUEST,
        id,
        answer::NO_SESSION,
        "this server has sessions: it is spoken to with initialize first, and then with an Mcp-Session-Id",
    )
}

const ENDED: &str = "the server's process ended";

/// The child that runs.
#[derive(Debug)]
struct Running {
    child: Child,
    waiting: Mutex<Waiting>,
    catalog: tokio::sync::Mutex<Catalog>,
}

#[derive(Debug, Default)]
struct Waiting {
    calls: HashMap<i64, Call>,
    next: i64,
    closed: bool,
}

/// A request that is open.
#[derive(Debug)]
struct Call {
    /// Id and progress token as the client wrote them.
    id: String,
    token: Option<String>,
    wants_log: bool,
    to: mpsc::UnboundedSender<Said>,
    unread: Arc<AtomicUsize>,
}

/// A message for a client, with its own ids.
#[derive(Debug)]
struct Said {
    text: Bytes,
    status: StatusCode,
    last: bool,
}

impl Running {
    /// Which era the child speaks.
    async fn ask(self: &Arc<Self>) -> Era {
        let discover = Message::read(DISCOVER);
        let Some(Ok(mut call)) = discover.as_ref().map(|message| self.open(message)) else {
            return Era::Unknown;
        };
        let answer = async {
            self.child.write(&call.sent).await.ok()?;
            loop {
                let said = call.heard.recv().await?;
                if said.last {
                    return Some(said.text);
                }
            }
        };
        let Ok(said) = timeout(limits::PROBE_TIME, answer).await else { return Era::Legacy(None) };
        let said = said.as_deref().and_then(|text| std::str::from_utf8(text).ok()).and_then(Message::read);
        call.answered = true;
        match said {
            Some(said) if said.at(&["result", "supportedVersions"]).is_some() => Era::Modern,
            Some(said) if said.error_code() == Some(-32022) => Era::Modern,
            Some(said) => Era::Legacy(said.get("error").is_some().then(|| said.text().to_owned().into())),
            None => Era::Ended(Instant::now()),
        }
    }

    /// The answer to a request of our own.
    async fn answer(self: &Arc<Self>, request: &str) -> Option<Bytes> {
        let mut call = self.open(&Message::read(request)?).ok()?;
        self.child.write(&call.sent).await.ok()?;
        loop {
            let said = call.next().await?;
            if said.last {
                return Some(said.text);
            }
        }
    }

    /// Which parameters of a tool have headers. If the child does not say, none have: it is no reason to break a call.
    async fn declared(self: &Arc<Self>, tool: &str, request: &Message<'_>) -> Vec<Declared> {
        let mut catalog = self.catalog.lock().await;
        if let Some(known) = catalog.get(tool) {
            return known.to_vec();
        }
        catalog.asking();
        let mut cursor = None;
        for _ in 0..limits::CATALOG_PAGES {
            let page = catalog::page(request, cursor.as_deref());
            let Ok(Some(text)) = timeout(limits::PROBE_TIME, self.answer(&page)).await else { break };
            let answer = std::str::from_utf8(&text).ok().and_then(Message::read);
            cursor = answer.and_then(|answer| catalog.learn(&answer));
            if cursor.is_none() {
                break;
            }
        }
        catalog.get(tool).unwrap_or_default().to_vec()
    }

    async fn request(self: &Arc<Self>, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let mut call = match self.open(message) {
            Ok(call) => call,
            Err(NotOpened::TooMany) => {
                return Ok(answer::busy(
                    message.id().map(Json::raw),
                    "too many requests are open at this server",
                ));
            }
            Err(NotOpened::Gone) => return Err(UpstreamError::NeverSent(ENDED.to_owned())),
        };
        let sent = self.child.write(&call.sent).await;
        sent.map_err(|Gone| UpstreamError::NeverSent(ENDED.to_owned()))?;
        match timeout(limits::FIRST_MESSAGE_TIME, call.next()).await {
            Err(_) => Ok(answer::events(as_events(call, None))),
            Ok(None) => Err(UpstreamError::Lost(ENDED.to_owned())),
            Ok(Some(said)) if said.last => Ok(answer::json(said.status, said.text)),
            Ok(Some(said)) => Ok(answer::events(as_events(call, Some(answer::event(None, &said.text))))),
        }
    }

    fn open(self: &Arc<Self>, message: &Message<'_>) -> Result<OpenCall, NotOpened> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(NotOpened::Gone);
        }
        if waiting.calls.len() >= limits::SHARED_CALLS {
            return Err(NotOpened::TooMany);
        }
        waiting.next += 1;
        let ours = waiting.next;
        let token = message.meta(meta::PROGRESS_TOKEN);
        let mut edits = Edits::of(message.text());
        for part in [message.id(), token].into_iter().flatten() {
            edits.replace(part, ours.to_string());
        }
        let (to, heard) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let call = Call {
            id: message.id().map_or("null", Json::raw).to_owned(),
            token: token.map(|token| token.raw().to_owned()),
            wants_log: message.meta(meta::LOG_LEVEL).is_some(),
            to,
            unread: Arc::clone(&unread),
        };
        waiting.calls.insert(ours, call);
        Ok(OpenCall { running: Arc::clone(self), ours, heard, unread, sent: edits.done(), answered: false })
    }

    /// Brings a message of the child to whom it belongs.
    fn bring(&self, message: &Message<'_>, name: &str) {
        if message.kind == Kind::Request {
            return self.refuse(message, name);
        }
        let mut waiting = self.waiting();
        let Some(ours) = waiting.whose(message) else {
            return tracing::debug!(server = %name, "a message that belongs to nobody");
        };
        let last = message.kind == Kind::Response;
        let Some(call) = waiting.calls.get(&ours) else { return };
        let said = Said { text: call.restored(message), status: answer::modern_status(message), last };
        let unread = call.unread.fetch_add(said.text.len(), Ordering::Relaxed);
        let too_much = !last && unread > limits::UNREAD_BYTES;
        if call.to.send(said).is_err() || last || too_much {
            waiting.calls.remove(&ours);
        }
        if too_much {
            tracing::warn!(server = %name, "a client does not read: its stream is cut");
            drop(waiting);
            self.cancel(ours, "the client does not read");
        }
    }

    /// A server has no requests in this era; one that has would wait for ever.
    fn refuse(&self, message: &Message<'_>, name: &str) {
        tracing::warn!(server = %name, "a request of the server, which this revision does not have");
        let id = message.id().map_or("null", Json::raw);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"there are no requests of servers in this revision"}}}}"#
        );
        self.child.write_later(answer.as_bytes());
    }

    fn cancel(&self, ours: i64, why: &str) {
        self.child.write_later(
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{ours},"reason":"{why}"}}}}"#
            )
            .as_bytes(),
        );
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What we ask to learn the era.
const DISCOVER: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"tabellion-gateway","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}}"#
);

enum NotOpened {
    TooMany,
    Gone,
}

impl Waiting {
    fn whose(&self, message: &Message<'_>) -> Option<i64> {
        if message.kind == Kind::Response {
            return message.id()?.integer();
        }
        if let Some(subscription) = message.meta(meta::SUBSCRIPTION) {
            return subscription.integer();
        }
        match message.method()?.as_str() {
            "notifications/progress" => message.param(meta::PROGRESS_TOKEN)?.integer(),
            "notifications/message" => {
                let mut wanted = self.calls.iter().filter(|(_, call)| call.wants_log);
                wanted.next().filter(|_| wanted.next().is_none()).map(|(ours, _)| *ours)
            }
            _ => None,
        }
    }
}

impl Call {
    /// The message with the client's own id, token and subscription.
    fn restored(&self, message: &Message<'_>) -> Bytes {
        let is_progress = message.method().as_deref() == Some("notifications/progress");
        let token = message.param(meta::PROGRESS_TOKEN).filter(|_| is_progress);
        let mut edits = Edits::of(message.text());
        for (part, text) in [
            (message.id(), Some(&self.id)),
            (message.meta(meta::SUBSCRIPTION), Some(&self.id)),
            (message.at(&["result", "_meta", meta::SUBSCRIPTION]), Some(&self.id)),
            (token, self.token.as_ref()),
        ] {
            if let (Some(part), Some(text)) = (part, text) {
                edits.replace(part, text);
            }
        }
        edits.done()
    }
}

/// The client's end of a request. Dropped before the answer was heard, it cancels the request.
struct OpenCall {
    running: Arc<Running>,
    ours: i64,
    heard: mpsc::UnboundedReceiver<Said>,
    unread: Arc<AtomicUsize>,
    /// The request with our ids.
    sent: Bytes,
    answered: bool,
}

impl OpenCall {
    async fn next(&mut self) -> Option<Said> {
        let said = self.heard.recv().await;
        if let Some(said) = &said {
            self.unread.fetch_sub(said.text.len(), Ordering::Relaxed);
        }
        self.answered = said.as_ref().is_none_or(|said| said.last);
        said
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let open = self.running.waiting().calls.remove(&self.ours).is_some();
        if open && !self.answered {
            self.running.cancel(self.ours, "the client went away");
        }
    }
}

fn as_events(call: OpenCall, first: Option<Bytes>) -> AnswerBody {
    let first = stream::iter(first.into_iter().map(Ok));
    let rest = stream::unfold(Some(call), |call| async move {
        let mut call = call?;
        match timeout(limits::KEEP_ALIVE, call.next()).await {
            Err(_) => Some((Ok(answer::ALIVE), Some(call))),
            Ok(Some(said)) => {
                let text = answer::event(None, &said.text);
                Some((Ok(text), (!said.last).then_some(call)))
            }
            Ok(None) => Some((Err(UpstreamError::Lost(ENDED.to_owned())), None)),
        }
    });
    first.chain(rest).boxed()
}

async fn hear(running: std::sync::Weak<Running>, mut lines: Lines, name: Arc<str>) {
    while let Some(line) = lines.recv().await {
        let Some(running) = running.upgrade() else { return };
        match std::str::from_utf8(&line).ok().and_then(Message::read) {
            Some(message) => running.bring(&message, &name),
            None => tracing::debug!(server = %name, "a line that is no message"),
        }
    }
    if let Some(running) = running.upgrade() {
        let mut waiting = running.waiting();
        waiting.closed = true;
        waiting.calls.clear();
    }
}
