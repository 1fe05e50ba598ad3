//! Look-ups of sessions, for display and not for decisions: the scopes that a caller has committed itself to (V-36), and
//! whether a session exists.

use admission::principal::{Caller, account_key};
use admission::session::Account;
use evidence::StoreError;
use vap::message::Scope;

use super::DecisionWriter;
use super::states::{StreamState, account_stream};

impl DecisionWriter {
    /// Returns the scopes of the caller's live sessions on a route. Empty if there are none, if only a message
    /// signature would identify the caller, or if the store cannot be read.
    pub async fn scopes_of(&self, caller: &Caller, route: &str) -> Vec<Scope> {
        self.read_scopes(caller, route).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a list of tools is shown as it is: the evidence cannot be read");
            Vec::new()
        })
    }

    /// Returns `true` if there is a session with this id, open or closed. `false` if the store cannot be read: the next
    /// request to the store then reports the error.
    pub async fn has_session(&self, session_id: &str) -> bool {
        self.states(&[session_id.to_owned()]).await.is_ok_and(|states| !states.is_empty())
    }

    async fn read_scopes(&self, caller: &Caller, route: &str) -> Result<Vec<Scope>, StoreError> {
        let Some(account) = self.account_of(caller).await? else { return Ok(Vec::new()) };
        let sessions = self.states(account.live_sessions()).await?;
        let of_route = |state: StreamState| match state {
            StreamState::Session(state) => Some(state.session.agreed)
                .filter(|agreed| agreed.route() == route && agreed.principal().is_presented_by(caller, None)),
            _ => None,
        };
        Ok(sessions.into_iter().filter_map(of_route).map(|agreed| agreed.scope().clone()).collect())
    }

    /// Reads the account of a caller; `None` if there is none, or if only a message signature would identify the caller.
    pub(super) async fn account_of(&self, caller: &Caller) -> Result<Option<Account>, StoreError> {
        let presumed = caller.presumed();
        let Some(key) = account_key(presumed.as_ref().unwrap_or(caller), None) else { return Ok(None) };
        Ok(match self.states(&[account_stream(&key)]).await?.pop() {
            Some(StreamState::Account(account)) => Some(account),
            _ => None,
        })
    }

    /// Reads the states of those streams that have one.
    async fn states(&self, names: &[String]) -> Result<Vec<StreamState>, StoreError> {
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        let stored = self.inner.store.streams(&borrowed).await?;
        let read = |(name, stored): (&String, Option<evidence::StoredStream>)| {
            let stored = stored?;
            StreamState::read(name, stored.agreed.as_ref(), &stored.running).ok().flatten()
        };
        Ok(names.iter().zip(stored).filter_map(read).collect())
    }
}
