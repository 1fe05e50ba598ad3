//! Which responses a server may give, and where. Clients match responses by their ids alone, and those are small numbers:
//! one server's text would be taken for the answer of another.
//!
//! A response passes on the stream of the very request that it answers. On a stream that is the session's (GET, and what is
//! resumed) it passes if its id is that of a request that went to this server. What cannot be read does not pass at all,
//! as other readers may see a response in it. Ids are equal if value and type are: SDKs that take `"7"` for 7 are no reason
//! to let it through.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::names::Whose;
use super::sessions::Session;
use crate::limits::{FEDERATED_ASKED, MAX_ASKED_ID_BYTES};
use crate::relay;
use crate::upstream::Exchange;
use crate::upstream::text::{Id, Json, Kind, Message};

/// What a stream is for.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// The answer to this request; if there is none, no answer.
    Of(Option<Id>),
    /// Whatever the session asked of a server.
    Session(Arc<Session>),
}

impl Awaited {
    /// What is awaited of an exchange.
    pub fn of(request: &Exchange) -> Self {
        let text = std::str::from_utf8(&request.body).ok();
        Self::to(text.and_then(Message::read).as_ref())
    }

    /// What answers this message.
    pub fn to(message: Option<&Message<'_>>) -> Self {
        let request = message.filter(|message| message.kind == Kind::Request);
        Self::Of(request.and_then(Message::id).and_then(Id::read))
    }

    /// Whether this server may say this here.
    pub fn takes(&self, whose: Whose, text: &[u8]) -> bool {
        let message = std::str::from_utf8(text).ok().and_then(Message::read);
        match message {
            None => !relay::is_message(text),
            Some(message) if message.get("result").is_none() && message.get("error").is_none() => true,
            Some(message) => self.takes_response(whose, &message),
        }
    }

    fn takes_response(&self, whose: Whose, message: &Message<'_>) -> bool {
        // A result beside a method is a response to some, and a request to others.
        if message.kind != Kind::Response {
            return false;
        }
        let Some(id) = message.id().filter(|id| id.raw() != "null") else {
            // An error of the transport, which answers the whole exchange.
            return matches!(self, Self::Of(_)) && message.get("result").is_none();
        };
        match (self, Id::read(id)) {
            (_, None) => false,
            (Self::Of(awaited), Some(id)) => awaited.as_ref() == Some(&id),
            (Self::Session(session), Some(id)) => session.asked().is_of(&id, whose),
        }
    }
}

/// Which server each request of a session went to, as far back as anybody may resume.
#[derive(Debug, Default)]
pub struct AskedOf(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    servers: HashMap<Id, Whose>,
    order: VecDeque<Id>,
}

impl AskedOf {
    /// A request goes to this server; to all of them, if none is named: then none of them answers the client.
    pub fn remember(&self, id: Option<Json<'_>>, whose: Option<Whose>) {
        let id = id.filter(|id| id.raw().len() <= MAX_ASKED_ID_BYTES);
        let Some(id) = id.and_then(Id::read) else { return };
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(whose) = whose else {
            requests.servers.remove(&id);
            return;
        };
        if requests.servers.insert(id.clone(), whose).is_none() {
            requests.order.push_back(id);
        }
        while requests.order.len() > FEDERATED_ASKED {
            if let Some(oldest) = requests.order.pop_front() {
                requests.servers.remove(&oldest);
            }
        }
    }

    fn is_of(&self, id: &Id, whose: Whose) -> bool {
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        requests.servers.get(id) == Some(&whose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(request: &str) -> Awaited {
        Awaited::to(Message::read(request).as_ref())
    }

    #[test]
    fn on_the_stream_of_a_request_only_its_own_answer_passes() {
        let awaited = awaited(r#"{"id":7,"method":"tools/call"}"#);
        for text in [
            r#"{"id":7,"result":{}}"#,
            r#"{"id":7e0,"error":{}}"#,
            r#"{"id":null,"error":{}}"#,
            r#"{"error":{}}"#,
            r#"{"id":8,"method":"roots/list"}"#,
            r#"{"method":"notifications/progress"}"#,
            "Not found",
            "",
        ] {
            assert!(awaited.takes(0, text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"id":8,"result":{}}"#,
            r#"{"id":"7","result":{}}"#,
            r#"{"id":null,"result":{}}"#,
            r#"{"result":{}}"#,
            r#"{"id":[7],"result":{}}"#,
            r#"{"id":7,"method":"x","result":{}}"#,
            r#"[{"id":8,"result":{}}]"#,
            "\u{feff}{\"id\":8,\"result\":{}}",
            r#"{"id":8}"#,
        ] {
            assert!(!awaited.takes(0, text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_no_request_has_no_answer() {
        let awaited = awaited(r#"{"id":7,"result":{}}"#);
        assert!(!awaited.takes(0, br#"{"id":7,"result":{}}"#));
    }

    #[test]
    fn old_requests_are_forgotten() {
        let asked = AskedOf::default();
        for id in 0..=FEDERATED_ASKED {
            asked.remember(Json::whole(&id.to_string()), Some(1));
        }
        let id = |text: &str| Json::whole(text).and_then(Id::read).unwrap();
        assert!(!asked.is_of(&id("0"), 1) && asked.is_of(&id("1"), 1) && !asked.is_of(&id("1"), 0));
    }
}
