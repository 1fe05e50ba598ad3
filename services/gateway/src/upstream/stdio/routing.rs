//! Assigns the messages of a legacy child to streams.
//!
//! A child has one output, while Streamable HTTP has one stream per request and a common one; nothing on the wire says
//! which one is meant. A response goes to the stream of its request, progress to that of its token, a message of a task
//! to the request that waits for the task's result. A request of the server (elicitation, sampling, roots) goes to the
//! one open call, because a client may refuse it elsewhere. If several calls are open, it goes to the common stream if
//! that has a reader, and otherwise to the newest call, so that no call waits for an answer to a request that was never
//! read. A call that its client has cancelled counts as open no more: most servers never answer it, and its client no
//! longer reads its stream. An answer that comes all the same still finds it.

use std::collections::{BTreeMap, HashMap};

use super::streams::{COMMON, StreamNo};
use crate::frame::NOTIFICATIONS_CANCELLED;
use crate::limits;
use crate::upstream::text::{Id, RpcKind, RpcMessage, meta};

/// The open requests of one session, in both directions.
#[derive(Debug, Default)]
pub struct Routing {
    calls: BTreeMap<StreamNo, RoutedCall>,
    /// Requests of the server, with the stream to which each was sent.
    asked: HashMap<Id, StreamNo>,
}

#[derive(Debug)]
struct RoutedCall {
    id: Id,
    /// The raw JSON of the id, as the client wrote it.
    id_text: String,
    token: Option<Id>,
    /// The task whose result the request waits for (`tasks/result`).
    task: Option<String>,
    /// True if the request may make the server send requests of its own.
    acts: bool,
    /// True if the client has cancelled the request.
    cancelled: bool,
}

/// The destination of a child's message.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageRoute {
    /// The response to the request of this stream, with the raw id that the client wrote.
    Answer(StreamNo, String),
    /// A message for this stream.
    On(StreamNo),
    /// A response without an open request.
    Nowhere,
}

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Another request with this id is open.
    SameId,
    /// Too many requests are open.
    TooMany,
    /// The request has no valid id.
    NoId,
}

impl Routing {
    /// Checks whether a request may be opened.
    ///
    /// # Errors
    /// The reason, as [`NotTaken`], if not.
    pub fn may_open(&self, request: &RpcMessage<'_>) -> Result<(), NotTaken> {
        let id = request.id().and_then(Id::read).ok_or(NotTaken::NoId)?;
        if self.open().count() >= limits::SESSION_CALLS {
            return Err(NotTaken::TooMany);
        }
        if self.calls.values().any(|call| call.id == id) {
            return Err(NotTaken::SameId);
        }
        Ok(())
    }

    /// Records a request that is sent to the child.
    pub fn opened(&mut self, stream: StreamNo, request: &RpcMessage<'_>) {
        let Some((id, text)) = request.id().and_then(|id| Some((Id::read(id)?, id.raw()))) else { return };
        let method = request.method().unwrap_or_default();
        let call = RoutedCall {
            id,
            id_text: text.to_owned(),
            token: request.meta(meta::PROGRESS_TOKEN).and_then(Id::read),
            task: (method == "tasks/result").then(|| request.param("taskId")?.string()).flatten(),
            acts: matches!(&*method, "tools/call" | "prompts/get" | "resources/read" | "tasks/result"),
            cancelled: false,
        };
        self.calls.insert(stream, call);
    }

    /// Removes a request that will have no response.
    pub fn closed(&mut self, stream: StreamNo) {
        self.calls.remove(&stream);
        self.asked.retain(|_, asked_on| *asked_on != stream);
    }

    /// Records that a message of the client cancels a request, if it does. Beyond [`limits::SESSION_CALLS`] of them, the
    /// oldest cancelled request is removed, and its stream returned.
    pub fn note_cancellation(&mut self, message: &RpcMessage<'_>) -> Option<StreamNo> {
        if message.method().as_deref() != Some(NOTIFICATIONS_CANCELLED) {
            return None;
        }
        let id = message.param("requestId").and_then(Id::read)?;
        self.calls.values_mut().find(|call| call.id == id)?.cancelled = true;
        let mut cancelled = self.calls.iter().filter(|(_, call)| call.cancelled).map(|(stream, _)| *stream);
        let (oldest, others) = (cancelled.next()?, cancelled.count());
        if others < limits::SESSION_CALLS {
            return None;
        }
        self.closed(oldest);
        Some(oldest)
    }

    /// Returns whether any request is open.
    pub fn is_busy(&self) -> bool {
        self.open().next().is_some()
    }

    /// The requests that are neither answered nor cancelled, oldest first.
    fn open(&self) -> impl DoubleEndedIterator<Item = (StreamNo, &RoutedCall)> {
        self.calls.iter().filter(|(_, call)| !call.cancelled).map(|(stream, call)| (*stream, call))
    }

    /// The destination of a child's message. `listening`: the common stream has a reader.
    pub fn route(&mut self, message: &RpcMessage<'_>, listening: bool) -> MessageRoute {
        match message.kind {
            RpcKind::Response => self.answer(message),
            RpcKind::Request => {
                let stream = self.of_task(message).unwrap_or_else(|| self.of_question(listening));
                if let Some(id) = message.id().and_then(Id::read) {
                    if self.asked.len() >= limits::SESSION_CALLS {
                        self.asked.clear(); // They only say where a cancellation goes.
                    }
                    self.asked.insert(id, stream);
                }
                MessageRoute::On(stream)
            }
            RpcKind::Notification => MessageRoute::On(self.of_notification(message)),
        }
    }

    fn answer(&mut self, message: &RpcMessage<'_>) -> MessageRoute {
        let id = message.id().and_then(Id::read);
        let Some(stream) =
            self.calls.iter().find(|(_, call)| Some(&call.id) == id.as_ref()).map(|(no, _)| *no)
        else {
            return MessageRoute::Nowhere;
        };
        let text = self.calls.remove(&stream).map(|call| call.id_text).unwrap_or_default();
        self.asked.retain(|_, asked_on| *asked_on != stream);
        MessageRoute::Answer(stream, text)
    }

    fn of_notification(&mut self, message: &RpcMessage<'_>) -> StreamNo {
        match message.method().as_deref() {
            Some("notifications/progress") => {
                let token = message.param(meta::PROGRESS_TOKEN).and_then(Id::read);
                self.find(|call| token.is_some() && call.token == token).unwrap_or(COMMON)
            }
            Some(NOTIFICATIONS_CANCELLED) => {
                let id = message.param("requestId").and_then(Id::read);
                id.and_then(|id| self.asked.remove(&id)).unwrap_or(COMMON)
            }
            Some("notifications/message") => {
                self.of_task(message).or_else(|| self.only_call()).unwrap_or(COMMON)
            }
            _ => COMMON,
        }
    }

    fn of_task(&self, message: &RpcMessage<'_>) -> Option<StreamNo> {
        let task = message.meta(meta::RELATED_TASK)?.get("taskId")?.string()?;
        self.open().find(|(_, call)| call.task.as_ref() == Some(&task)).map(|(stream, _)| stream)
    }

    fn of_question(&self, listening: bool) -> StreamNo {
        match self.only_call() {
            Some(stream) => stream,
            None if listening => COMMON,
            None => self.open().next_back().map_or(COMMON, |(stream, _)| stream),
        }
    }

    /// The only open call of a method that may cause questions; without one, the only open request.
    fn only_call(&self) -> Option<StreamNo> {
        let acting: Vec<StreamNo> =
            self.open().filter(|(_, call)| call.acts).map(|(stream, _)| stream).collect();
        let all: Vec<StreamNo> = self.open().map(|(stream, _)| stream).collect();
        match (&*acting, &*all) {
            ([only], _) | ([], [only]) => Some(*only),
            _ => None,
        }
    }

    fn find(&self, is_it: impl Fn(&RoutedCall) -> bool) -> Option<StreamNo> {
        self.calls.iter().find(|(_, call)| is_it(call)).map(|(stream, _)| *stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamNo = StreamNo(1);
    const B: StreamNo = StreamNo(2);

    fn open(routing: &mut Routing, stream: StreamNo, text: &str) {
        let message = RpcMessage::read(text).unwrap();
        routing.may_open(&message).unwrap();
        routing.opened(stream, &message);
    }

    fn route(routing: &mut Routing, text: &str) -> MessageRoute {
        routing.route(&RpcMessage::read(text).unwrap(), true)
    }

    fn two_calls() -> Routing {
        let mut routing = Routing::default();
        open(&mut routing, A, r#"{"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"}}}"#);
        open(&mut routing, B, r#"{"id":"1","method":"tools/call","params":{"_meta":{"progressToken":7}}}"#);
        routing
    }

    #[test]
    fn an_answer_finds_its_request_by_value_and_type_of_the_id() {
        let mut routing = two_calls();
        assert_eq!(route(&mut routing, r#"{"id":"1","result":{}}"#), MessageRoute::Answer(B, "\"1\"".into()));
        assert_eq!(route(&mut routing, r#"{"id":"1","result":{}}"#), MessageRoute::Nowhere);
        assert_eq!(route(&mut routing, r#"{"id":1,"error":{}}"#), MessageRoute::Answer(A, "1".into()));
    }

    #[test]
    fn progress_goes_where_its_token_came_from() {
        let mut routing = two_calls();
        let progress = |token| {
            format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
            )
        };
        assert_eq!(route(&mut routing, &progress("7")), MessageRoute::On(B));
        assert_eq!(route(&mut routing, &progress("\"p\"")), MessageRoute::On(A));
        assert_eq!(route(&mut routing, &progress("\"7\"")), MessageRoute::On(COMMON));
    }

    #[test]
    fn a_question_goes_to_the_one_call_that_is_open_though_a_list_is_open_too() {
        let mut routing = Routing::default();
        open(&mut routing, A, r#"{"id":1,"method":"tools/call"}"#);
        open(&mut routing, B, r#"{"id":2,"method":"tools/list"}"#);
        assert_eq!(route(&mut routing, r#"{"id":0,"method":"elicitation/create"}"#), MessageRoute::On(A));
    }

    #[test]
    fn a_question_that_may_be_of_two_calls_goes_where_somebody_reads() {
        let mut routing = two_calls();
        let question = RpcMessage::read(r#"{"id":0,"method":"elicitation/create"}"#).unwrap();
        assert_eq!(routing.route(&question, true), MessageRoute::On(COMMON));
        assert_eq!(routing.route(&question, false), MessageRoute::On(B));
    }

    #[test]
    fn a_question_of_a_task_goes_to_who_waits_for_its_result() {
        let mut routing = two_calls();
        let waits = StreamNo(3);
        open(&mut routing, waits, r#"{"id":3,"method":"tasks/result","params":{"taskId":"t"}}"#);
        let question = r#"{"id":0,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;
        assert_eq!(route(&mut routing, question), MessageRoute::On(waits));
    }

    fn cancels(routing: &mut Routing, id: &str) -> Option<StreamNo> {
        let text = format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        routing.note_cancellation(&RpcMessage::read(&text).unwrap())
    }

    #[test]
    fn a_cancelled_call_gets_its_late_answer_and_no_question_of_another() {
        let mut routing = two_calls();
        assert_eq!(cancels(&mut routing, "\"1\""), None);
        let question = RpcMessage::read(r#"{"id":0,"method":"elicitation/create"}"#).unwrap();
        assert_eq!(routing.route(&question, true), MessageRoute::On(A), "the other one is open");
        cancels(&mut routing, "1");
        assert!(!routing.is_busy());
        for listening in [true, false] {
            assert_eq!(routing.route(&question, listening), MessageRoute::On(COMMON));
        }
        let log = r#"{"method":"notifications/message","params":{}}"#;
        assert_eq!(route(&mut routing, log), MessageRoute::On(COMMON));
        assert_eq!(route(&mut routing, r#"{"id":1,"result":{}}"#), MessageRoute::Answer(A, "1".into()));
    }

    #[test]
    fn a_question_of_a_task_goes_to_who_waits_for_its_result_now() {
        let mut routing = Routing::default();
        let waits = |id| format!(r#"{{"id":{id},"method":"tasks/result","params":{{"taskId":"t"}}}}"#);
        let question = r#"{"id":0,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;
        open(&mut routing, A, &waits(1));
        cancels(&mut routing, "1");
        assert_eq!(route(&mut routing, question), MessageRoute::On(COMMON), "its client has cancelled");
        open(&mut routing, B, &waits(2));
        open(&mut routing, StreamNo(3), r#"{"id":3,"method":"tools/call"}"#);
        assert_eq!(route(&mut routing, question), MessageRoute::On(B));
    }

    #[test]
    fn cancelled_calls_do_not_use_up_the_open_ones_and_are_not_kept_without_end() {
        let mut routing = Routing::default();
        let most = limits::SESSION_CALLS as u64;
        let mut removed = Vec::new();
        for number in 1..=2 * most {
            open(&mut routing, StreamNo(number), &format!(r#"{{"id":{number},"method":"tools/call"}}"#));
            removed.extend(cancels(&mut routing, &number.to_string()));
        }
        assert_eq!(removed, (1..=most).map(StreamNo).collect::<Vec<_>>(), "the oldest ones");
        assert_eq!(routing.calls.len(), limits::SESSION_CALLS);
        assert_eq!(route(&mut routing, r#"{"id":1,"result":{}}"#), MessageRoute::Nowhere);
    }

    #[test]
    fn a_question_is_taken_back_where_it_was_asked() {
        let mut routing = Routing::default();
        open(&mut routing, A, r#"{"id":1,"method":"tools/call"}"#);
        route(&mut routing, r#"{"id":"q","method":"roots/list"}"#);
        let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":"q"}}"#;
        assert_eq!(route(&mut routing, cancelled), MessageRoute::On(A));
    }

    #[test]
    fn a_second_request_with_the_id_of_an_open_one_is_not_taken() {
        let routing = two_calls();
        let again = RpcMessage::read(r#"{"id":1.0,"method":"ping"}"#).unwrap();
        assert_eq!(routing.may_open(&again), Err(NotTaken::SameId));
    }
}
