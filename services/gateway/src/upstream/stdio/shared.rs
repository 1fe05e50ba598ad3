//! The child process that serves all modern requests, and the era of its program. [`Stdio`](super::Stdio) sends the
//! requests here; the [`multiplexer`](super::multiplexer) passes them to a running child.
//!
//! The modern era has no sessions: each request carries all that it needs, so one process serves all clients. If it
//! ends, the next request starts another, at most `limits::RESTARTS` times within the restart window.
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
use super::multiplexer::Multiplexer;
use crate::frame::{NOTIFICATIONS_CANCELLED, error_code};
use crate::limits;
use crate::upstream::text::{Edits, Json, RpcMessage};
use crate::upstream::{UpstreamAnswer, UpstreamError, answer};

/// The shared child, started on demand.
#[derive(Debug)]
pub struct SharedChild {
    program: Program,
    name: Arc<str>,
    state: tokio::sync::Mutex<SharedChildState>,
}

#[derive(Debug, Default)]
struct SharedChildState {
    era: ProgramEra,
    /// The times of the starts within the restart window.
    starts: VecDeque<Instant>,
}

/// The known era of the program. Only [`SharedChild::server`] changes it.
#[derive(Debug, Default)]
enum ProgramEra {
    #[default]
    Unknown,
    /// The program's newest process, which may have ended.
    Modern(Arc<Multiplexer>),
    /// The error with which the program answered `server/discover`. `None` if it did not answer in time, or with
    /// something else.
    Legacy(Option<Bytes>),
    /// The time at which the program ended instead of answering. Some legacy servers do so, but the cause may be a
    /// temporary fault, so the program is asked again after the restart window.
    Ended(Instant),
}

/// The server for a modern request.
enum ModernServer {
    Running(Arc<Multiplexer>),
    /// There is none, because the program is a legacy server, with the error as in [`ProgramEra::Legacy`].
    Legacy(Option<Bytes>),
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
        Ok(matches!(self.server().await?, ModernServer::Running(_)))
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
        let child = match self.server().await? {
            ModernServer::Running(child) => child,
            ModernServer::Legacy(error) => return Ok(legacy_answer(message, error.as_ref())),
        };
        if let Err(refusal) = mirrors::check(headers, message) {
            return Ok(*refusal);
        }
        if mirrors::may_have_parameters(headers, message) {
            let tool = message.param("name").and_then(Json::string).unwrap_or_default();
            let declared = child.declared_headers(&tool, message).await;
            if let Err(refusal) = mirrors::check_parameters(&declared, headers, message) {
                return Ok(*refusal);
            }
        }
        child.request(message).await
    }

    /// Forwards a notification, except `notifications/cancelled`: a modern client cancels over HTTP by a disconnect, and
    /// the notification would contain an id that the child does not know.
    ///
    /// # Errors
    /// An [`UpstreamError`] if the child does not start or has ended.
    pub async fn notify(&self, message: &RpcMessage<'_>) -> Result<UpstreamAnswer, UpstreamError> {
        let is_cancellation = message.method().as_deref() == Some(NOTIFICATIONS_CANCELLED);
        if !is_cancellation && let ModernServer::Running(child) = self.server().await? {
            child.notify(message).await?;
        }
        Ok(answer::empty(StatusCode::ACCEPTED))
    }

    /// Ends the child, and waits until its process has exited.
    pub async fn stop(&self) {
        let child = match &self.state.lock().await.era {
            ProgramEra::Modern(child) => Arc::clone(child),
            ProgramEra::Unknown | ProgramEra::Legacy(_) | ProgramEra::Ended(_) => return,
        };
        child.stop().await;
    }

    /// The server for a modern request. Starts the program if no process runs, and asks it for its era if that is not
    /// known; other requests wait meanwhile.
    async fn server(&self) -> Result<ModernServer, UpstreamError> {
        let mut state = self.state.lock().await;
        if state.era.needs_start() {
            let child = self.start(&mut state.starts)?;
            state.era = match state.era {
                ProgramEra::Modern(_) => ProgramEra::Modern(child),
                ProgramEra::Unknown | ProgramEra::Legacy(_) | ProgramEra::Ended(_) => probe(child).await,
            };
        }
        Ok(state.era.server())
    }

    fn start(&self, starts: &mut VecDeque<Instant>) -> Result<Arc<Multiplexer>, UpstreamError> {
        while starts.front().is_some_and(|start| start.elapsed() > limits::RESTART_WINDOW) {
            starts.pop_front();
        }
        if starts.len() >= limits::RESTARTS {
            let why = format!("{}: its process ends again and again", self.name);
            return Err(UpstreamError::NeverSent(why));
        }
        starts.push_back(Instant::now());
        Multiplexer::start(&self.program, &self.name)
            .map_err(|error| UpstreamError::NeverSent(format!("{} does not start: {error}", self.name)))
    }
}

impl ProgramEra {
    /// Returns whether the program has to be started, to serve a request or to learn its era.
    fn needs_start(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Modern(child) => !child.is_alive(),
            Self::Legacy(_) => false,
            Self::Ended(at) => at.elapsed() >= limits::RESTART_WINDOW,
        }
    }

    fn server(&self) -> ModernServer {
        match self {
            Self::Modern(child) => ModernServer::Running(Arc::clone(child)),
            Self::Legacy(error) => ModernServer::Legacy(error.clone()),
            Self::Unknown | Self::Ended(_) => ModernServer::Legacy(None),
        }
    }
}

/// Asks a child for the era of its program. A child that is not modern is ended.
async fn probe(child: Arc<Multiplexer>) -> ProgramEra {
    let Ok(answer) = timeout(limits::PROBE_TIME, child.ask(DISCOVER)).await else {
        return ProgramEra::Legacy(None);
    };
    match answer.as_deref().and_then(RpcMessage::read_bytes) {
        Some(answer) if answer.at(&["result", "supportedVersions"]).is_some() => ProgramEra::Modern(child),
        Some(answer) if answer.error_code() == Some(error_code::UNSUPPORTED_REVISION) => {
            ProgramEra::Modern(child)
        }
        Some(answer) => {
            ProgramEra::Legacy(answer.get("error").is_some().then(|| answer.text().to_owned().into()))
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

/// The answer to a modern client from a legacy server. `server/discover` is answered with the server's own error.
fn legacy_answer(message: &RpcMessage<'_>, error: Option<&Bytes>) -> UpstreamAnswer {
    let is_discover = message.method().as_deref() == Some("server/discover");
    let error = error.filter(|_| is_discover).and_then(|error| RpcMessage::read_bytes(error));
    if let (Some(error), Some(id)) = (error, message.id()) {
        let mut edits = Edits::of(error.text());
        if let Some(gateway_id) = error.id() {
            edits.replace(gateway_id, id.raw());
        }
        return answer::json(answer::modern_status(&error), edits.done());
    }
    answer::error(
        StatusCode::BAD_REQUEST,
        message.id().map(Json::raw),
        error_code::TRANSPORT_REFUSAL,
        "this server has sessions: it is spoken to with initialize first, and then with an Mcp-Session-Id",
    )
    .unsent()
}
