//! The check which responses a server may send, and on which stream. Clients match responses by id alone, and ids are
//! small numbers: one server's response could be taken for another's.
//!
//! A response passes on the stream of the request that it answers. On a session's stream (GET, or a resumed stream) it
//! passes if its id is that of a request that went to this server. Unreadable text never passes, because other readers
//! may see a response in it. Ids are equal if type and value are equal: SDKs that treat `"7"` as 7 do not widen the
//! check.

use std::sync::Arc;

use super::names::ServerIndex;
use super::sessions::FederatedSession;
use crate::upstream::text::{Id, RpcKind, RpcMessage, may_be_message};

/// The responses that may appear on a stream.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// The response to the request with this id. `None` if the message was not a request: then no response may appear.
    Of(Option<Id>),
    /// Responses to any request of the session that went to the same server.
    Session(Arc<FederatedSession>),
}

impl Awaited {
    /// The response awaited by this message.
    pub fn to(message: Option<&RpcMessage<'_>>) -> Self {
        let request = message.filter(|message| message.kind == RpcKind::Request);
        Self::Of(request.and_then(RpcMessage::id).and_then(Id::read))
    }

    /// Returns whether this server may send this text on the stream.
    pub fn takes(&self, server: ServerIndex, text: &[u8]) -> bool {
        match RpcMessage::read_bytes(text) {
            None => !may_be_message(text),
            Some(message) if message.get("result").is_none() && message.get("error").is_none() => true,
            Some(message) => self.takes_response(server, &message),
        }
    }

    fn takes_response(&self, server: ServerIndex, message: &RpcMessage<'_>) -> bool {
        // Some readers treat a message with `result` and `method` as a response, others as a request.
        if message.kind != RpcKind::Response {
            return false;
        }
        let Some(id) = message.id().filter(|id| id.raw() != "null") else {
            // A transport error without id: it answers the whole exchange.
            return matches!(self, Self::Of(_)) && message.get("result").is_none();
        };
        match (self, Id::read(id)) {
            (_, None) => false,
            (Self::Of(awaited), Some(id)) => awaited.as_ref() == Some(&id),
            (Self::Session(session), Some(id)) => session.sent_requests().is_of(&id, server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(request: &str) -> Awaited {
        Awaited::to(RpcMessage::read(request).as_ref())
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
}
