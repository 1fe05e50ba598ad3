//! Sessions of clients without VAP under the operator's commitment: opened by their first call, and ended with their MCP
//! session.
//!
//! The operator's commitment writes an envelope for each call (`admission`), which is then decided like an agent's. The
//! caller gets no VAP from this: its answer has the form for clients without VAP.

use std::sync::Arc;

use admission::authenticated::Authenticated;
use admission::principal::Caller;
use admission::rules::OperatorSession;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use vap::message::MessageType;
use vap::message::slot::Unreadable;

use super::Calls;
use crate::decision_writer::{CallJob, MessageJob};
use crate::limits::{KNOWN_CLIENT_IDLE, MAX_KNOWN_CLIENTS};

/// The ids of sessions that are known to be committed. Requests for the same id wait for the first.
pub struct OpenSessions(Cache<String, ()>);

impl Default for OpenSessions {
    fn default() -> Self {
        let all = Cache::builder().max_capacity(MAX_KNOWN_CLIENTS).time_to_idle(KNOWN_CLIENT_IDLE);
        Self(all.eviction_policy(EvictionPolicy::lru()).build())
    }
}

/// The reason why a session was not opened: the code in its Verdict.
#[derive(Debug, thiserror::Error)]
#[error("the operator's commitment was denied: {0}")]
struct NotOpened(String);

impl Calls {
    /// Writes the envelope of a call without VAP, after its session is committed. `None` if the route has no operator's
    /// commitment, or if that was denied.
    pub(super) async fn operator_envelope(
        &self,
        job: &CallJob,
    ) -> Option<Result<Authenticated, Box<Unreadable>>> {
        let commitment = self.rules.operator_commitment.as_ref()?;
        let now = self.shared.writer.now();
        let session_of = |caller: &Caller| commitment.session_of(&self.rules, caller, now);
        let presumed = job.caller.presumed();
        let caller = match presumed {
            // The gateway was restarted since the MCP session began, or the client invented the id.
            Some(presumed) if self.is_open(session_of(&presumed).id()).await => presumed,
            _ => job.caller.clone(),
        };
        let session = session_of(&caller);
        match self.open(&session, caller).await {
            Ok(()) => Some(session.envelope(&job.tool, job.arguments.text())),
            Err(why) => {
                tracing::warn!(%why, route = &*self.route, "a call without VAP has no session");
                None
            }
        }
    }

    /// Ends the session of an MCP session that has ended.
    pub(super) fn end_operator_session(&self, caller: &Caller) {
        let Some(commitment) = &self.rules.operator_commitment else { return };
        let given = caller.presumed().unwrap_or_else(|| caller.clone());
        if given.mcp_session.is_some() && given.is_session_issued {
            let session = commitment.session_of(&self.rules, &given, self.shared.writer.now());
            self.shared.writer.end_session_of(session.id(), caller);
        }
    }

    async fn is_open(&self, id: &str) -> bool {
        self.shared.operator_sessions.0.contains_key(id) || self.shared.writer.has_session(id).await
    }

    /// Commits the session, unless that was done before.
    async fn open(&self, session: &OperatorSession<'_>, caller: Caller) -> Result<(), Arc<NotOpened>> {
        let committed = async {
            match self.shared.writer.has_session(session.id()).await {
                true => Ok(()),
                false => self.commit(session, caller).await,
            }
        };
        self.shared.operator_sessions.0.try_get_with_by_ref(session.id(), committed).await
    }

    async fn commit(&self, session: &OperatorSession<'_>, caller: Caller) -> Result<(), NotOpened> {
        let (route, message) = (self.route.to_string(), session.commitment());
        let job = MessageJob { route, caller, message, invocation: None };
        let decision = self.judged_message(MessageType::ScopeCommitment, job).await;
        match decision.verdict.verdict.is_permit() {
            true => Ok(()),
            false => {
                let reason = decision.verdict.verification.reason.as_ref();
                Err(NotOpened(reason.map(ToString::to_string).unwrap_or_default()))
            }
        }
    }
}
