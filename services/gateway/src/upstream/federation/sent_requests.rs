//! The requests of a session that were sent, and the server to which each went.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::names::ServerIndex;
use crate::limits::{FEDERATED_ASKED, MAX_ASKED_ID_BYTES};
use crate::upstream::text::{Id, Json};

/// The server to which each of a session's recent requests went; the last [`FEDERATED_ASKED`] are kept, for resumed
/// streams.
#[derive(Debug, Default)]
pub struct SentRequests(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    servers: HashMap<Id, ServerIndex>,
    order: VecDeque<Id>,
}

impl SentRequests {
    /// Records that the request with this id goes to this server. With `None` it goes to all servers, and no single one
    /// may answer it.
    pub fn remember(&self, id: Option<Json<'_>>, server: Option<ServerIndex>) {
        let id = id.filter(|id| id.raw().len() <= MAX_ASKED_ID_BYTES);
        let Some(id) = id.and_then(Id::read) else { return };
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(server) = server else {
            requests.servers.remove(&id);
            return;
        };
        if requests.servers.insert(id.clone(), server).is_none() {
            requests.order.push_back(id);
        }
        while requests.order.len() > FEDERATED_ASKED {
            if let Some(oldest) = requests.order.pop_front() {
                requests.servers.remove(&oldest);
            }
        }
    }

    /// Returns whether the request with this id went to this server, and to no other.
    pub fn is_of(&self, id: &Id, server: ServerIndex) -> bool {
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        requests.servers.get(id) == Some(&server)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn old_requests_are_forgotten() {
        let sent = SentRequests::default();
        for id in 0..=FEDERATED_ASKED {
            sent.remember(Json::whole(&id.to_string()), Some(1));
        }
        let id = |text: &str| Json::whole(text).and_then(Id::read).unwrap();
        assert!(!sent.is_of(&id("0"), 1) && sent.is_of(&id("1"), 1) && !sent.is_of(&id("1"), 0));
    }
}
