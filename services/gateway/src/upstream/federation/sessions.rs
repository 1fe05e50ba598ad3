//! Legacy sessions with several servers: one towards the client, and one at each server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::{HeaderMap, HeaderValue};

use super::names::ServerIndex;
use super::sent_requests::SentRequests;
use crate::limits;
use crate::upstream::request::{LAST_EVENT, SESSION, VERSION, speaks_legacy};

/// A client's legacy session, with its session at each server.
#[derive(Debug)]
pub struct FederatedSession {
    members: Vec<ServerSession>,
    sent_requests: SentRequests,
    used: Mutex<Instant>,
}

/// The session at one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSession {
    /// The server's index.
    pub server: ServerIndex,
    /// The `Mcp-Session-Id` that the server issued; `None` if the server has no sessions.
    pub id: Option<HeaderValue>,
    /// The agreed protocol revision.
    pub version: HeaderValue,
}

impl FederatedSession {
    /// Makes a session that is open at all servers.
    pub fn new(members: Vec<ServerSession>) -> Self {
        Self { members, sent_requests: SentRequests::default(), used: Mutex::new(Instant::now()) }
    }

    /// The headers of a request, with the session and revision of this server.
    pub fn headers(&self, server: ServerIndex, headers: &HeaderMap) -> HeaderMap {
        self.members[server].headers(headers)
    }

    /// Returns whether a request names a revision that has sessions, or the one that all servers agreed to. True without
    /// the header.
    pub fn speaks(&self, headers: &HeaderMap) -> bool {
        let agreed = self.members.first().and_then(|member| member.version.to_str().ok());
        speaks_legacy(headers, agreed)
    }

    /// The session at each server.
    pub fn members(&self) -> &[ServerSession] {
        &self.members
    }

    /// The record of which request went to which server.
    pub fn sent_requests(&self) -> &SentRequests {
        &self.sent_requests
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self) -> bool {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > limits::FEDERATED_IDLE
    }
}

impl ServerSession {
    /// The headers of a request, with the session and revision of this server, and without `Last-Event-ID`.
    pub fn headers(&self, headers: &HeaderMap) -> HeaderMap {
        let mut headers = headers.clone();
        headers.remove(SESSION);
        headers.remove(LAST_EVENT);
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        headers.insert(VERSION, self.version.clone());
        headers
    }
}

/// The open sessions, by the `Mcp-Session-Id` towards the client.
#[derive(Debug, Default)]
pub struct FederatedSessions(Mutex<HashMap<String, Arc<FederatedSession>>>);

impl FederatedSessions {
    /// Returns whether another session may be opened (limit `FEDERATED_SESSIONS`).
    pub fn have_room(&self) -> bool {
        self.lock().len() < limits::FEDERATED_SESSIONS
    }

    /// Adds an opened session.
    pub fn insert(&self, id: String, session: FederatedSession) {
        self.lock().insert(id, Arc::new(session));
    }

    /// The session with this id; marks it as used now.
    pub fn get(&self, id: &str) -> Option<Arc<FederatedSession>> {
        let session = self.lock().get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Removes a session.
    pub fn remove(&self, id: &str) -> Option<Arc<FederatedSession>> {
        self.lock().remove(id)
    }

    /// Removes and returns the sessions that were idle for longer than `FEDERATED_IDLE`. One that a request or a stream
    /// holds is in use.
    pub fn remove_idle(&self) -> Vec<Arc<FederatedSession>> {
        let mut idle = Vec::new();
        self.lock().retain(|_, session| {
            if Arc::strong_count(session) > 1 {
                session.touch();
            }
            let goes = session.is_idle();
            if goes {
                idle.push(Arc::clone(session));
            }
            !goes
        });
        idle
    }

    /// The number of open sessions.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<FederatedSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_a_stream_holds_is_in_use_until_the_stream_ends() {
        let sessions = FederatedSessions::default();
        sessions.insert("id".into(), FederatedSession::new(Vec::new()));
        let held = sessions.get("id").unwrap();
        let used = || *held.used.lock().unwrap();
        let before = used();
        assert!(sessions.remove_idle().is_empty());
        assert!(used() > before);
    }
}
