//! The ends of sessions, at the request of a caller or of the operator. Each session is closed as soon as it has no call in
//! flight.
//!
//! Not here: sessions that are due (`upkeep`), and streams of clients without VAP (`client_streams`).

use admission::principal::Caller;
use admission::session::Account;
use tokio::sync::oneshot;

use super::DecisionWriter;
use super::decisions::{CloseWork, Closed};

impl DecisionWriter {
    /// Ends the sessions that a caller committed to in its MCP session, which has ended.
    pub async fn end_sessions_of(&self, caller: &Caller) {
        self.end_client_stream(caller);
        match self.account_of(caller).await {
            Ok(account) => {
                let sessions = account.iter().flat_map(Account::live_sessions);
                sessions.for_each(|session| self.end_session_of(session, caller));
            }
            Err(error) => tracing::warn!(%error, "sessions are left to end by themselves"),
        }
    }

    /// Ends a session if this caller is its principal.
    pub fn end_session_of(&self, session_id: &str, caller: &Caller) {
        self.submit(Box::new(CloseWork::of_caller(self.clone(), session_id.to_owned(), caller.clone())));
    }

    /// Ends a session. Returns `true` if it is closed now, and `false` if there is none or if it closes later, after
    /// its calls in flight.
    pub async fn end_session(&self, session_id: &str) -> bool {
        let (reply, answer) = oneshot::channel();
        self.submit(Box::new(CloseWork::new(self.clone(), session_id.to_owned(), Some(reply))));
        matches!(answer.await, Ok(Closed::Now))
    }
}
