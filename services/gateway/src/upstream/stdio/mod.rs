//! An MCP server that is a child process, presented as a Streamable HTTP server.
//!
//! In the legacy eras each session has its own process: `initialize` starts a child and issues a session id, DELETE
//! ends both. A session whose child has ended is unknown (404), so that the client opens a new one. Each client may
//! have a share of the sessions; a further one replaces the client's own session that was idle for longest, never that
//! of another client. The rate of session starts per client is limited, too. In the modern era all requests share one
//! child (`shared`, `multiplexer`). A child writes a single sequence of messages; `routing` finds the stream of each,
//! and `streams` keeps it for the reader, also after a reconnection.
//!
//! Messages pass byte for byte, except for ids on the shared child. Concurrent requests with one id in one session are
//! refused, because their answers could not be told apart.
//!
//! Not here: origins, tokens, rate limits (`front`).

mod catalog;
mod child;
mod mirrors;
mod multiplexer;
mod routing;
mod session;
mod shared;
mod streams;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

pub use self::catalog::ToolHeaders;
pub use self::child::Program;
use self::session::{Begun, StdioSession};
use self::shared::SharedChild;
use super::request::{
    LAST_EVENT, SESSION, accepts_events, header, is_initialize, is_method_of_the_past, is_modern,
    new_session_id, speaks_legacy,
};
use super::text::{Json, RpcKind, RpcMessage};
use super::{ClientName, Exchange, SessionHold, Upstream, UpstreamAnswer, UpstreamError, answer, fields};
use crate::frame::error_code;
use crate::limits;

/// An [`Upstream`] that is a program with the stdio transport.
#[derive(Debug)]
pub struct Stdio {
    program: Program,
    name: Arc<str>,
    sessions: Arc<StdioSessions>,
    shared: SharedChild,
    spared: Duration,
}

impl Stdio {
    /// Makes the upstream; the first request starts a child. `name` identifies it in the log. Must be called within a
    /// tokio runtime, since it spawns a task that ends idle sessions.
    pub fn new(program: Program, name: &str) -> Self {
        let name: Arc<str> = name.into();
        let sessions = Arc::default();
        tokio::spawn(end_idle(Arc::downgrade(&sessions)));
        let shared = SharedChild::new(program.clone(), Arc::clone(&name));
        Self { shared, program, name, sessions, spared: limits::SESSION_SPARED }
    }

    /// Sets the minimum idle time of a session before a new one may replace it (default `SESSION_SPARED`).
    #[must_use]
    pub fn sparing(mut self, spared: Duration) -> Self {
        self.spared = spared;
        self
    }

    /// Returns whether the program speaks the modern revision (without sessions). Starts the program to find out.
    ///
    /// # Errors
    /// [`UpstreamError::NeverSent`] if the program does not start.
    pub async fn is_modern(&self) -> Result<bool, UpstreamError> {
        self.shared.is_modern().await
    }

    /// The number of open legacy sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().open.len()
    }

    /// Ends all children, and waits until their processes have exited.
    pub async fn stop(&self) {
        let open: Vec<_> = self.sessions.lock().open.drain().map(|(_, owned)| owned.session).collect();
        for session in &open {
            session.end();
        }
        self.shared.stop().await;
        for session in open {
            session.gone().await;
        }
    }

    async fn post(&self, request: &Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        let Some(message) = RpcMessage::read_bytes(&request.body) else {
            return Ok(answer::no_message());
        };
        if is_modern(request, &message) {
            return match message.kind {
                RpcKind::Request if is_initialize(&message) => match self.shared.is_modern().await? {
                    true => Ok(answer::no_sessions(message.id().map(Json::raw))),
                    false => self.initialize(&request.client, &message).await,
                },
                RpcKind::Request => self.shared.request(&request.headers, &message).await,
                RpcKind::Notification => self.shared.notify(&message).await,
                RpcKind::Response => Ok(answer::no_responses()),
            };
        }
        let id = message.id().map(Json::raw);
        if is_initialize(&message) {
            // The revision is agreed on in its body: the header says nothing yet.
            return match self.living(request, id) {
                Ok(_) => Ok(answer::initialized_already(id)),
                Err(_) => self.initialize(&request.client, &message).await,
            };
        }
        match self.session(request, id) {
            Ok(session) if message.kind != RpcKind::Request => Ok(session.notify(&message).await),
            Ok(session) => session.request(&message, accepts_events(request)).await,
            Err(refusal) => Ok(refusal),
        }
    }

    async fn initialize(
        &self,
        client: &ClientName,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let _place = match self.sessions.reserve(client, self.program.children, self.spared) {
            Ok(place) => place,
            Err(why) => return Ok(answer::busy(message.id().map(Json::raw), why)),
        };
        let session = StdioSession::start(&self.program, &self.name)
            .map_err(|error| UpstreamError::NeverSent(format!("{} does not start: {error}", self.name)))?;
        let text = match session.initialize(message).await? {
            Begun::Ready(text) => text,
            Begun::Refused(text) => return Ok(answer::json(refusal_status(&text), text)),
        };
        let id = new_session_id()?;
        let mut answer = answer::json(StatusCode::OK, text);
        let value = HeaderValue::from_str(&id).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        answer.headers.insert(SESSION, value);
        self.sessions.insert(id, client.clone(), &session);
        Ok(answer)
    }

    fn listen(&self, request: &Exchange) -> UpstreamAnswer {
        match self.session(request, None) {
            Ok(session) => session.listen(header(request, &LAST_EVENT)),
            Err(refusal) => refusal,
        }
    }

    fn delete(&self, request: &Exchange) -> UpstreamAnswer {
        let session = match self.session(request, None) {
            Ok(session) => session,
            Err(refusal) => return refusal,
        };
        session.end();
        if let Some(id) = header(request, &SESSION) {
            self.sessions.lock().open.remove(id);
        }
        answer::empty(StatusCode::OK)
    }

    /// The living session that a request names, in a revision of that session, or the refusal.
    fn session(&self, request: &Exchange, id: Option<&str>) -> Result<Arc<StdioSession>, UpstreamAnswer> {
        let session = self.living(request, id)?;
        match speaks_legacy(&request.headers, session.version()) {
            true => Ok(session),
            false => Err(answer::unknown_revision(id)),
        }
    }

    /// The living session that a request names, or the refusal.
    fn living(&self, request: &Exchange, id: Option<&str>) -> Result<Arc<StdioSession>, UpstreamAnswer> {
        let Some(named) = header(request, &SESSION) else {
            return Err(answer::session_missing(id));
        };
        let session = self.sessions.get(named);
        session.filter(|session| session.is_alive()).ok_or_else(|| answer::no_such_session(id).unsent())
    }
}

#[async_trait]
impl Upstream for Stdio {
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError> {
        match request.method {
            Method::POST => self.post(&request).await,
            _ if is_method_of_the_past(&request) => Ok(answer::not_allowed("POST")),
            Method::GET => Ok(self.listen(&request)),
            Method::DELETE => Ok(self.delete(&request)),
            _ => Ok(answer::not_allowed("GET, POST, DELETE")),
        }
    }

    fn hold(&self, headers: &HeaderMap) -> SessionHold {
        let named = fields::text(headers, &SESSION);
        let session = named.and_then(|id| self.sessions.get(id));
        session.map(SessionHold::of).unwrap_or_default()
    }
}

/// The open sessions of all clients.
#[derive(Debug, Default)]
struct StdioSessions(Mutex<StdioSessionTable>);

#[derive(Debug, Default)]
struct StdioSessionTable {
    open: HashMap<String, Owned>,
    /// Numbers of children that are starting, by client.
    starting: HashMap<ClientName, usize>,
    /// Times of each client's recent session starts, for as long as they count against its limit.
    started: HashMap<ClientName, VecDeque<Instant>>,
}

/// A session and the client that opened it.
#[derive(Debug)]
struct Owned {
    client: ClientName,
    session: Arc<StdioSession>,
}

impl Owned {
    /// The time for which the session was idle. `None` while it is in use, also by a request that is held back.
    fn idle_for(&self) -> Option<Duration> {
        let is_held = Arc::strong_count(&self.session) > 1;
        self.session.idle_for().filter(|_| !is_held)
    }
}

impl StdioSessionTable {
    fn all(&self) -> usize {
        self.open.len() + self.starting.values().sum::<usize>()
    }

    fn of(&self, client: &ClientName) -> usize {
        let open = self.open.values().filter(|owned| owned.client == *client).count();
        open + self.starting.get(client).copied().unwrap_or_default()
    }

    /// The id of the client's session that was idle for longest, and for at least `spared`.
    fn longest_idle(&self, client: &ClientName, spared: Duration) -> Option<String> {
        let own = self.open.iter().filter(|(_, owned)| owned.client == *client);
        let idle = own.filter_map(|(id, owned)| Some((owned.idle_for()?, id)));
        idle.filter(|(time, _)| *time >= spared).max_by_key(|(time, _)| *time).map(|(_, id)| id.clone())
    }

    /// Counts a session start. Returns false if the client has reached [`limits::SESSION_STARTS`] within
    /// [`limits::SESSION_START_WINDOW`].
    fn count_start(&mut self, client: &ClientName) -> bool {
        self.started.retain(|_, starts| {
            starts.retain(|start| start.elapsed() < limits::SESSION_START_WINDOW);
            !starts.is_empty()
        });
        let starts = self.started.entry(client.clone()).or_default();
        let may = starts.len() < limits::SESSION_STARTS;
        if may {
            starts.push_back(Instant::now());
        }
        may
    }
}

/// A reservation to start one child; it is released on drop.
#[derive(Debug)]
struct StartReservation(Arc<StdioSessions>, ClientName);

impl Drop for StartReservation {
    fn drop(&mut self) {
        let mut table = self.0.lock();
        if let Some(count) = table.starting.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                table.starting.remove(&self.1);
            }
        }
    }
}

impl StdioSessions {
    /// Reserves a session. If the client has used its share, or all sessions are taken, the client's longest idle
    /// session is ended: many clients never close theirs.
    fn reserve(
        self: &Arc<Self>,
        client: &ClientName,
        most: usize,
        spared: Duration,
    ) -> Result<StartReservation, &'static str> {
        let mut table = self.lock();
        // One client may have half of all, so that other clients get some as well.
        let share = client.share(most, most.div_ceil(2));
        let is_full = |table: &StdioSessionTable| table.all() >= most || table.of(client) >= share;
        if is_full(&table)
            && let Some(longest) = table.longest_idle(client, spared)
            && let Some(owned) = table.open.remove(&longest)
        {
            owned.session.end();
        }
        if is_full(&table) {
            return Err("this server has as many sessions as it may, or as one client may have of them");
        }
        if !table.count_start(client) {
            return Err("this client starts too many sessions");
        }
        *table.starting.entry(client.clone()).or_default() += 1;
        Ok(StartReservation(Arc::clone(self), client.clone()))
    }

    /// The session with this id.
    fn get(&self, id: &str) -> Option<Arc<StdioSession>> {
        self.lock().open.get(id).map(|owned| Arc::clone(&owned.session))
    }

    /// Removes the sessions that were idle for too long. One that a request holds is in use.
    fn remove_idle(&self) {
        self.lock().open.retain(|_, Owned { session, .. }| {
            if Arc::strong_count(session) > 1 {
                session.touch();
            }
            !session.is_idle()
        });
    }

    /// Adds a session; it is removed when its child ends.
    fn insert(self: &Arc<Self>, id: String, client: ClientName, session: &Arc<StdioSession>) {
        self.lock().open.insert(id.clone(), Owned { client, session: Arc::clone(session) });
        let sessions = Arc::downgrade(self);
        let ended = session.ended();
        tokio::spawn(async move {
            ended.await;
            if let Some(sessions) = sessions.upgrade() {
                sessions.lock().open.remove(&id);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, StdioSessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end_idle(sessions: Weak<StdioSessions>) {
    loop {
        tokio::time::sleep(limits::SESSION_SWEEP).await;
        let Some(sessions) = sessions.upgrade() else { return };
        sessions.remove_idle();
    }
}

/// The HTTP status for a refused `initialize`: 400 for the error codes of the modern era, otherwise 200.
fn refusal_status(text: &[u8]) -> StatusCode {
    match RpcMessage::read_bytes(text).and_then(|message| message.error_code()) {
        Some(
            error_code::HEADER_MISMATCH | error_code::MISSING_CAPABILITY | error_code::UNSUPPORTED_REVISION,
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_that_a_request_holds_is_in_use_until_it_is_let_go() {
        let sessions = Arc::new(StdioSessions::default());
        let session = StdioSession::start(&Program::new(["cat"]), &"cat".into()).unwrap();
        sessions.insert("id".into(), ClientName::Gateway, &session);
        drop(session);
        let idle = || sessions.lock().longest_idle(&ClientName::Gateway, Duration::ZERO);
        assert_eq!(idle().as_deref(), Some("id"));
        let held = sessions.get("id").unwrap();
        assert_eq!(idle(), None);
        let before = held.last_used();
        sessions.remove_idle();
        assert!(held.last_used() > before);
        drop(held);
        assert_eq!(idle().as_deref(), Some("id"));
    }
}
