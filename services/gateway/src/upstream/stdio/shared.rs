//! The one child process that all modern requests share.
//!
//! The modern era has no sessions: each request carries all that it needs, so one process ([`running`](super::running))
//! serves all clients. If it ends, the next request starts another, at most
//! `limits::RESTARTS` times within the restart window.
//!
//! The gateway asks once, with its own `server/discover`, whether the program speaks this era. If not, the client
//! receives the program's error, and learns from it that it has to send `initialize`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use super::child::Program;
use super::mirrors;
use super::running::RunningChild;
use crate::frame::{NOTIFICATIONS_CANCELLED, error_code};
use crate::limits;
use crate::upstream::text::{Edits, Json, RpcMessage};
use crate::upstream::{UpstreamAnswer, UpstreamError, answer};

/// The shared child, started on demand, and the known era of its program.
#[derive(Debug)]
pub struct SharedChild {
    program: Program,
    name: Arc<str>,
    state: tokio::sync::Mutex<SharedChildState>,
}

#[derive(Debug, Default)]
struct SharedChildState {
    running: Option<Arc<RunningChild>>,
    starts: VecDeque<Instant>,
    era: ProgramEra,
}

#[derive(Clone, Debug, Default)]
enum ProgramEra {
    #[default]
    Unknown,
    Modern,
    /// The program answered `server/discover` with this error, or not in time.
    Legacy(Option<Bytes>),
    /// The program ended instead of answering. Some legacy servers do, but the cause may be a temporary fault, so it is
    /// asked again after the restart window.
    Ended(Instant),
}

impl SharedChild {
    /// Makes the state; no child runs yet.
    pub fn new(program: Program, name: Arc<str>) -> Self {
        Self { program, name, state: tokio::sync::Mutex::default() }
    }

    /// Returns whether the program speaks the modern revision (without sessions). Starts the program to find out.
    ///
    /// # Errors
    /// [`UpstreamError::NeverSent`] if the program does not start.
    pub async fn is_modern(&self) -> Result<bool, UpstreamError> {
        Ok(matches!(self.get().await?, ProbedProgram::Modern(_)))
    }

    /// Forwards a request, after checking that its headers match its body.
    ///
    /// # Errors
    /// An [`UpstreamError`] if the child does not start, or ends before it answers.
    pub async fn request(
        &self,
        headers: &HeaderMap,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let running = match self.get().await? {
            ProbedProgram::Modern(running) => running,
            ProbedProgram::Legacy(error) => return Ok(refused(message, error.as_ref())),
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

    /// Forwards a notification, except `notifications/cancelled`: in this revision it is for other transports, and it
    /// would contain an id that the child does not know.
    ///
    /// # Errors
    /// An [`UpstreamError`] if the child does not start or has ended.
    pub async fn tell(&self, message: &RpcMessage<'_>) -> Result<UpstreamAnswer, UpstreamError> {
        let is_for_others = message.method().as_deref() == Some(NOTIFICATIONS_CANCELLED);
        if !is_for_others && let ProbedProgram::Modern(running) = self.get().await? {
            running.tell(message).await?;
        }
        Ok(answer::empty(StatusCode::ACCEPTED))
    }

    /// Ends the child, and waits until its process has exited.
    pub async fn stop(&self) {
        let running = self.state.lock().await.running.take();
        if let Some(running) = running {
            running.stop().await;
        }
    }

    async fn get(&self) -> Result<ProbedProgram, UpstreamError> {
        let mut state = self.state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|running| running.is_alive()) {
            return Ok(ProbedProgram::Modern(Arc::clone(running)));
        }
        match &state.era {
            ProgramEra::Legacy(error) => return Ok(ProbedProgram::Legacy(error.clone())),
            ProgramEra::Ended(when) if when.elapsed() < limits::RESTART_WINDOW => {
                return Ok(ProbedProgram::Legacy(None));
            }
            ProgramEra::Unknown | ProgramEra::Modern | ProgramEra::Ended(_) => {}
        }
        state.running = None;
        let running = self.start(&mut state)?;
        if !matches!(state.era, ProgramEra::Modern) {
            state.era = ask(&running).await;
        }
        match &state.era {
            ProgramEra::Legacy(error) => Ok(ProbedProgram::Legacy(error.clone())),
            ProgramEra::Ended(_) => Ok(ProbedProgram::Legacy(None)),
            ProgramEra::Modern | ProgramEra::Unknown => {
                state.running = Some(Arc::clone(&running));
                Ok(ProbedProgram::Modern(running))
            }
        }
    }

    fn start(&self, state: &mut SharedChildState) -> Result<Arc<RunningChild>, UpstreamError> {
        let never = |why: String| UpstreamError::NeverSent(why);
        while state.starts.front().is_some_and(|start| start.elapsed() > limits::RESTART_WINDOW) {
            state.starts.pop_front();
        }
        if state.starts.len() >= limits::RESTARTS {
            return Err(never(format!("{}: its process ends again and again", self.name)));
        }
        state.starts.push_back(Instant::now());
        let running = RunningChild::start(&self.program, &self.name);
        running.map_err(|error| never(format!("{} does not start: {error}", self.name)))
    }
}

enum ProbedProgram {
    Modern(Arc<RunningChild>),
    Legacy(Option<Bytes>),
}

/// The answer to a modern client from a legacy server. `server/discover` is answered with the server's own error.
fn refused(message: &RpcMessage<'_>, error: Option<&Bytes>) -> UpstreamAnswer {
    let id = message.id().map(Json::raw);
    let error = error
        .filter(|_| message.method().as_deref() == Some("server/discover"))
        .and_then(|error| RpcMessage::read_bytes(error));
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
        error_code::TRANSPORT_REFUSAL,
        "this server has sessions: it is spoken to with initialize first, and then with an Mcp-Session-Id",
    )
}

/// Asks the child for its era.
async fn ask(running: &Arc<RunningChild>) -> ProgramEra {
    let Ok(reply) = timeout(limits::PROBE_TIME, running.answer(DISCOVER)).await else {
        return ProgramEra::Legacy(None);
    };
    let reply = reply.as_deref().and_then(RpcMessage::read_bytes);
    match reply {
        Some(reply) if reply.at(&["result", "supportedVersions"]).is_some() => ProgramEra::Modern,
        Some(reply) if reply.error_code() == Some(error_code::UNSUPPORTED_REVISION) => ProgramEra::Modern,
        Some(reply) => {
            ProgramEra::Legacy(reply.get("error").is_some().then(|| reply.text().to_owned().into()))
        }
        None => ProgramEra::Ended(Instant::now()),
    }
}

/// The gateway's `server/discover` request, to find out the era.
const DISCOVER: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"tabellion-gateway","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}}"#
);
