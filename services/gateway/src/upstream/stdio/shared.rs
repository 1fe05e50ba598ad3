//! The one child that all modern requests share.
//!
//! There is no session in this era: whatever a request needs, it carries. So one process ([`running`](super::running))
//! serves everybody; if it ends, the next request starts another, but not again and again.
//!
//! Whether the program speaks this era is asked once, with a `server/discover` of our own. If it does not, its error is
//! what a client gets, which then knows that it has to `initialize`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use super::child::Program;
use super::mirrors;
use super::running::Running;
use crate::limits;
use crate::upstream::text::{Edits, Json, Message};
use crate::upstream::{Answer, UpstreamError, answer};

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
            running.tell(message).await?;
        }
        Ok(answer::empty(StatusCode::ACCEPTED))
    }

    /// Ends the child, and is ready when it is gone.
    pub async fn stop(&self) {
        let running = self.state.lock().await.running.take();
        if let Some(running) = running {
            running.stop().await;
        }
    }

    async fn get(&self) -> Result<Found, UpstreamError> {
        let mut state = self.state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|running| running.is_alive()) {
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
            state.era = ask(&running).await;
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
        let running = Running::start(&self.program, &self.name);
        running.map_err(|error| never(format!("{} does not start: {error}", self.name)))
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

/// Which era the child speaks.
async fn ask(running: &Arc<Running>) -> Era {
    let Ok(said) = timeout(limits::PROBE_TIME, running.answer(DISCOVER)).await else {
        return Era::Legacy(None);
    };
    let said = said.as_deref().and_then(|text| std::str::from_utf8(text).ok()).and_then(Message::read);
    match said {
        Some(said) if said.at(&["result", "supportedVersions"]).is_some() => Era::Modern,
        Some(said) if said.error_code() == Some(-32022) => Era::Modern,
        Some(said) => Era::Legacy(said.get("error").is_some().then(|| said.text().to_owned().into())),
        None => Era::Ended(Instant::now()),
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
