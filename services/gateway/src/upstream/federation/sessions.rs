//! Legacy sessions with several servers: one towards the client, and what it is at each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::{HeaderMap, HeaderValue};

use super::answers::AskedOf;
use super::names::Whose;
use crate::limits;
use crate::upstream::request::{LAST_EVENT, SESSION, VERSION};

/// A session.
#[derive(Debug)]
pub struct Session {
    members: Vec<Member>,
    asked: AskedOf,
    used: Mutex<Instant>,
}

/// What a session is at one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which server.
    pub whose: Whose,
    /// The name that the server gave to it, if it has sessions.
    pub id: Option<HeaderValue>,
    /// The revision that was agreed on.
    pub version: HeaderValue,
}

impl Session {
    /// A session that was opened at all servers.
    pub fn new(members: Vec<Member>) -> Self {
        Self { members, asked: AskedOf::default(), used: Mutex::new(Instant::now()) }
    }

    /// The headers of a request as they are for one server.
    pub fn headers(&self, whose: Whose, headers: &HeaderMap) -> HeaderMap {
        self.members[whose].headers(headers)
    }

    /// What it is at each server.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Whom it asked what.
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
    /// The headers of a request as they are for this server.
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

/// The sessions that are open.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// Whether there may be another one.
    pub fn have_room(&self) -> bool {
        self.lock().len() < limits::FEDERATED_SESSIONS
    }

    /// A session is open.
    pub fn insert(&self, id: String, session: Session) {
        self.lock().insert(id, Arc::new(session));
    }

    /// The session of this name, which is now in use.
    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Forgets a session.
    pub fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().remove(id)
    }

    /// Forgets the sessions that nobody uses: those that no request or stream holds, for a long time.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
