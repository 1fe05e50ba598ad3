//! Legacy sessions with several servers: one towards the client, and one at each server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::{HeaderMap, HeaderValue};

use super::names::ServerIndex;
use super::sent_requests::SentRequests;
use crate::limits;
use crate::upstream::ClientName;
use crate::upstream::request::{LAST_EVENT, SESSION, VERSION, speaks_legacy};

/// A client's legacy session, with its session at each server.
#[derive(Debug)]
pub struct FederatedSession {
    /// The client that opened the session.
    client: ClientName,
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
    /// Makes a session of this client that is open at all servers.
    pub fn new(client: ClientName, members: Vec<ServerSession>) -> Self {
        Self { client, members, sent_requests: SentRequests::default(), used: Mutex::new(Instant::now()) }
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

/// The sessions of all clients.
#[derive(Debug, Default)]
pub struct FederatedSessions(Mutex<FederatedSessionTable>);

#[derive(Debug, Default)]
struct FederatedSessionTable {
    /// The open sessions, by the `Mcp-Session-Id` towards the client.
    open: HashMap<String, Arc<FederatedSession>>,
    /// Numbers of sessions that are being opened, by client.
    begun: HashMap<ClientName, usize>,
}

impl FederatedSessionTable {
    fn all(&self) -> usize {
        self.open.len() + self.begun.values().sum::<usize>()
    }

    fn of(&self, client: &ClientName) -> usize {
        let open = self.open.values().filter(|session| session.client == *client).count();
        open + self.begun.get(client).copied().unwrap_or_default()
    }
}

/// A session that is being opened; it counts as one of its client's until it is dropped.
#[derive(Debug)]
pub struct BegunSession<'a> {
    sessions: &'a FederatedSessions,
    client: ClientName,
}

impl Drop for BegunSession<'_> {
    fn drop(&mut self) {
        let mut table = self.sessions.lock();
        if let Some(count) = table.begun.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                table.begun.remove(&self.client);
            }
        }
    }
}

impl FederatedSessions {
    /// Begins to open a session for this client.
    ///
    /// # Errors
    /// The reason in words, if this client (limit `FEDERATED_CLIENT_SESSIONS`) or all clients together (limit
    /// `FEDERATED_SESSIONS`) have as many sessions as they may have.
    pub fn begin(&self, client: &ClientName) -> Result<BegunSession<'_>, &'static str> {
        let mut table = self.lock();
        if table.all() >= limits::FEDERATED_SESSIONS {
            return Err("there are as many sessions as there may be");
        }
        if table.of(client) >= client.share(limits::FEDERATED_SESSIONS, limits::FEDERATED_CLIENT_SESSIONS) {
            return Err(
                "this client has as many sessions as one client may have; it can end some with DELETE",
            );
        }
        *table.begun.entry(client.clone()).or_default() += 1;
        Ok(BegunSession { sessions: self, client: client.clone() })
    }

    /// Adds an opened session.
    pub fn insert(&self, id: String, session: FederatedSession) {
        self.lock().open.insert(id, Arc::new(session));
    }

    /// The session with this id; marks it as used now.
    pub fn get(&self, id: &str) -> Option<Arc<FederatedSession>> {
        let session = self.lock().open.get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Removes a session.
    pub fn remove(&self, id: &str) -> Option<Arc<FederatedSession>> {
        self.lock().open.remove(id)
    }

    /// Removes and returns the sessions that were idle for longer than `FEDERATED_IDLE`. One that a request or a stream
    /// holds is in use.
    pub fn remove_idle(&self) -> Vec<Arc<FederatedSession>> {
        let mut idle = Vec::new();
        self.lock().open.retain(|_, session| {
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
        self.lock().open.len()
    }

    fn lock(&self) -> MutexGuard<'_, FederatedSessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_a_stream_holds_is_in_use_until_the_stream_ends() {
        let sessions = FederatedSessions::default();
        sessions.insert("id".into(), FederatedSession::new(ClientName::Gateway, Vec::new()));
        let held = sessions.get("id").unwrap();
        let used = || *held.used.lock().unwrap();
        let before = used();
        assert!(sessions.remove_idle().is_empty());
        assert!(used() > before);
    }

    #[test]
    fn a_session_that_is_being_opened_counts_as_one_of_its_clients() {
        let sessions = FederatedSessions::default();
        let client = ClientName::Address([192, 0, 2, 1].into());
        let begin = || sessions.begin(&client);
        let begun: Vec<_> = (0..limits::FEDERATED_CLIENT_SESSIONS).map(|_| begin().unwrap()).collect();
        assert!(begin().is_err());
        assert!(sessions.begin(&ClientName::LocalProxy).is_ok(), "it stands for many clients");
        drop(begun);
        assert!(begin().is_ok());
    }
}
