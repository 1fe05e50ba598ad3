//! Legacy sessions with several servers: one towards the client, and one at each server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::{HeaderMap, HeaderValue};

use super::answers::AskedOf;
use super::names::Whose;
use crate::limits;
use crate::upstream::request::{LAST_EVENT, SESSION, VERSION};

/// A client's legacy session, with its session at each server.
#[derive(Debug)]
pub struct Session {
    members: Vec<Member>,
    asked: AskedOf,
    used: Mutex<Instant>,
}

/// The session at one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The server's index.
    pub whose: Whose,
    /// The `Mcp-Session-Id` that the server issued; `None` if the server has no sessions.
    pub id: Option<HeaderValue>,
    /// The agreed protocol revision.
    pub version: HeaderValue,
}

impl Session {
    /// Makes a session that is open at all servers.
    pub fn new(members: Vec<Member>) -> Self {
        Self { members, asked: AskedOf::default(), used: Mutex::new(Instant::now()) }
    }

    /// The headers of a request, with the session and revision of this server.
    pub fn headers(&self, whose: Whose, headers: &HeaderMap) -> HeaderMap {
        self.members[whose].headers(headers)
    }

    /// The session at each server.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The record of which request went to which server.
    pub fn asked(&self) -> &AskedOf {
        &self.asked
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self) -> bool {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > limits::FEDERATED_IDLE
    }
}

impl Member {
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
pub struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// Returns whether another session may be opened (limit `FEDERATED_SESSIONS`).
    pub fn have_room(&self) -> bool {
        self.lock().len() < limits::FEDERATED_SESSIONS
    }

    /// Adds an opened session.
    pub fn insert(&self, id: String, session: Session) {
        self.lock().insert(id, Arc::new(session));
    }

    /// The session with this id; marks it as used now.
    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Removes a session.
    pub fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().remove(id)
    }

    /// Removes and returns the sessions that were idle for longer than `FEDERATED_IDLE` and that no request or stream
    /// holds.
    pub fn remove_idle(&self) -> Vec<Arc<Session>> {
        let mut idle = Vec::new();
        self.lock().retain(|_, session| {
            let goes = session.is_idle() && Arc::strong_count(session) == 1;
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
