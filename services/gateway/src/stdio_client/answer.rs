//! The messages of a response, one by one, and those of the streams that go on with it.
//!
//! A server of 2025-11-25 may end the stream of a request after an event with an id, and the client asks for the rest with a
//! GET after a pause. It may do so again and again, so the limit of the request ends the wait.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, Limited};
use jose::json;
use serde_json::Value;

use super::stream_position::{StreamPosition, is_temporary};
use crate::frame::RawId;
use crate::frame::reply::{self, Reply};
use crate::limits::MAX_ANSWER_BYTES;
use crate::relay::{CallLimit, Response, UPSTREAM_FAILED, lost_answer};
use crate::upstream::events::{Splitter, is_event_stream};
use crate::upstream::text::may_be_message;

/// A reader of responses, which hands each message to `send`.
pub struct MessageReader<'a, S> {
    /// The request that is not answered yet; `None` if the messages answer none.
    awaited: Option<&'a RawId>,
    position: StreamPosition,
    /// `true` while streams are read that resume the request's own. They may stay open after the answer.
    is_resumed: bool,
    send: S,
}

impl<'a, S, F> MessageReader<'a, S>
where
    S: FnMut(Bytes) -> F,
    F: Future<Output = ()>,
{
    /// A reader of the answer to the request `id`, or of messages that answer none.
    pub fn new(id: Option<&'a RawId>, send: S) -> Self {
        Self { awaited: id, position: StreamPosition::default(), is_resumed: false, send }
    }

    /// Reads the response to the request, and what `resume` gives after an event as long as the answer has not come. If it
    /// does not come, the last message is an error for the request. `resume` gives `None` if nothing can be resumed.
    pub async fn answer<R: Future<Output = Option<Response>>>(
        mut self,
        response: Response,
        limit: &CallLimit,
        resume: impl FnMut(HeaderValue) -> R,
    ) {
        let status = response.status();
        let mut why = self.read(response).await.err();
        if self.awaited.is_some() && why.is_none() {
            why = match limit.within(self.resumed(resume)).await {
                Ok(why) => why,
                Err(given_up) => Some(given_up.to_string()),
            };
        }
        if let Some(id) = self.awaited {
            let words =
                why.unwrap_or_else(|| format!("the server answered with HTTP status {}", status.as_u16()));
            (self.send)(lost_answer(Some(id), &words)).await;
        }
    }

    /// Reads the stream of the server's own messages, which `ask` opens after the last event, and asks for it again when it
    /// has ended or was refused, until the server says that it has none. `ask` gives `None` without a session.
    pub async fn listen<R: Future<Output = Option<Response>>>(
        mut self,
        mut ask: impl FnMut(Option<HeaderValue>) -> R,
    ) {
        while let Some(response) = ask(self.position.last_event().cloned()).await {
            match response.status() {
                StatusCode::METHOD_NOT_ALLOWED => return,
                status if !status.is_success() => self.position.refused(status),
                _ => {
                    if self.read(response).await.is_err() {
                        // What cannot be read would come again.
                        self.position.forget();
                    }
                }
            }
            tokio::time::sleep(self.position.pause()).await;
        }
    }

    /// Reads a response.
    ///
    /// # Errors
    /// The reason in words, if it cannot be read to its end.
    pub async fn read(&mut self, response: Response) -> Result<(), String> {
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            self.position.opened();
        }
        match is_event_stream(&head.headers) {
            true => self.events(body).await,
            false => self.whole(body).await,
        }
    }

    /// Reads the streams that go on with the answer. Returns the reason if the answer does not come, or `None` if nothing
    /// can be resumed.
    async fn resumed<R: Future<Output = Option<Response>>>(
        &mut self,
        mut resume: impl FnMut(HeaderValue) -> R,
    ) -> Option<String> {
        self.is_resumed = true;
        while self.awaited.is_some() {
            let last_event = self.position.last_event()?.clone();
            tokio::time::sleep(self.position.pause()).await;
            let response = resume(last_event).await?;
            let status = response.status();
            if is_temporary(status) {
                self.position.refused(status);
                continue;
            }
            if let Err(why) = self.read(response).await {
                return Some(why);
            }
            if !status.is_success() {
                return Some(format!("the server resumed its answer with HTTP status {}", status.as_u16()));
            }
        }
        None
    }

    async fn events(&mut self, mut body: Body) -> Result<(), String> {
        let mut splitter = Splitter::default();
        while let Some(frame) = body.frame().await {
            let Ok(chunk) = frame.map_err(|error| error.to_string())?.into_data() else { continue };
            for event in splitter.push(chunk).map_err(|error| error.to_string())? {
                self.position.advance(&event);
                if let Some(message) = event.data() {
                    self.pass(message).await;
                }
            }
            if self.is_resumed && self.awaited.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn whole(&mut self, body: Body) -> Result<(), String> {
        let read = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let text = read
            .map_err(|error| format!("the answer, of at most {MAX_ANSWER_BYTES} bytes: {error}"))?
            .to_bytes();
        if may_be_message(&text) {
            self.pass(text).await;
        }
        Ok(())
    }

    async fn pass(&mut self, message: Bytes) {
        let (Some(id), Ok(reply)) = (self.awaited, Reply::parse(message.clone())) else {
            return (self.send)(message).await;
        };
        let is_refusal = reply.is_error() && reply.id().is_none();
        if is_refusal || reply.answers(id) {
            self.awaited = None;
        }
        (self.send)(if is_refusal { refusal(id, &reply) } else { message }).await;
    }
}

/// Returns the error for a request whose id the front end has not read.
fn refusal(id: &RawId, error: &Reply) -> Bytes {
    let code = error.error_member("code").and_then(|code| code.parse().ok()).unwrap_or(UPSTREAM_FAILED);
    let words = error.error_member("message").and_then(|words| json::parse_text(words).ok());
    let words = words.as_ref().and_then(Value::as_str).unwrap_or("refused");
    reply::error(Some(id), code, words, None)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::future::ready;
    use std::time::Duration;

    use futures::{StreamExt, stream};
    use http::header::CONTENT_TYPE;
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::*;

    const PRIMING: &str = "id: e-1\nretry: 500\ndata: \n\n";
    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    fn events(text: impl Into<Body>) -> Response {
        let mut response = Response::new(text.into());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    fn event(message: &str) -> String {
        format!("data: {message}\n\n")
    }

    fn refused(status: StatusCode, text: &'static str) -> Response {
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        response
    }

    fn an_hour() -> CallLimit {
        CallLimit::new(Duration::from_secs(3_600), CancellationToken::new())
    }

    /// What a client saw, and what the server was asked for.
    #[derive(Default)]
    struct Seen {
        messages: Vec<String>,
        /// The event after which a stream was asked for, and when, in tenths of a second.
        asked: Vec<(String, u128)>,
    }

    impl Seen {
        fn note(&mut self, event: Option<&HeaderValue>, began: Instant) {
            let event = event.map(|event| event.to_str().unwrap().to_owned()).unwrap_or_default();
            self.asked.push((event, began.elapsed().as_millis() / 100));
        }

        /// The code and the text of the error for the request 1, which is the last message.
        fn error(&self) -> (i64, String) {
            let last: Value = serde_json::from_str(self.messages.last().unwrap()).unwrap();
            assert_eq!(last["id"], 1, "{last}");
            let words = last["error"]["message"].as_str().unwrap().to_owned();
            (last["error"]["code"].as_i64().unwrap(), words)
        }
    }

    /// Reads the answer to the request 1: the first response, and then these, one for each request.
    async fn answered(first: Response, rest: impl Into<VecDeque<Response>>, limit: &CallLimit) -> Seen {
        let mut rest: VecDeque<Response> = rest.into();
        let (id, began) = (RawId::read("1").unwrap(), Instant::now());
        let (mut messages, mut seen) = (Vec::new(), Seen::default());
        let send = |message: Bytes| {
            messages.push(String::from_utf8(message.to_vec()).unwrap());
            ready(())
        };
        let resume = |event: HeaderValue| {
            seen.note(Some(&event), began);
            ready(rest.pop_front())
        };
        MessageReader::new(Some(&id), send).answer(first, limit, resume).await;
        Seen { messages, ..seen }
    }

    fn at(asked: &[(&str, u128)]) -> Vec<(String, u128)> {
        asked.iter().map(|(event, time)| ((*event).to_owned(), *time)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_read_from_the_streams_that_the_server_opens_later_each_after_its_pause() {
        let rest = [events(format!("id: e-2\n{}", event(PROGRESS))), events(event(ANSWER))];
        let seen = answered(events(PRIMING), rest, &an_hour()).await;
        assert_eq!(seen.messages, [PROGRESS, ANSWER]);
        assert_eq!(seen.asked, at(&[("e-1", 5), ("e-2", 10)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stays_open_after_the_answer_is_not_read_on() {
        let answer = stream::once(ready(Ok::<_, Infallible>(Bytes::from(event(ANSWER)))));
        let rest = [events(Body::from_stream(answer.chain(stream::pending())))];
        let seen = answered(events(PRIMING), rest, &an_hour()).await;
        assert_eq!(seen.messages, [ANSWER]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_cannot_be_reached_is_asked_again_after_growing_pauses() {
        let gone = || refused(StatusCode::BAD_GATEWAY, r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#);
        let seen = answered(events(PRIMING), [gone(), gone(), events(event(ANSWER))], &an_hour()).await;
        assert_eq!(seen.messages, [ANSWER]);
        assert_eq!(seen.asked, at(&[("e-1", 5), ("e-1", 25), ("e-1", 65)]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_without_an_event_id_cannot_be_resumed() {
        let seen = answered(events("data: \n\n"), [events(event(ANSWER))], &an_hour()).await;
        assert_eq!(
            seen.error(),
            (i64::from(UPSTREAM_FAILED), "the server answered with HTTP status 200".into())
        );
        assert!(seen.asked.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_to_resume_is_the_error_for_the_request() {
        let unknown = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no such event"}}"#;
        let rest = [refused(StatusCode::NOT_FOUND, unknown)];
        let seen = answered(events(PRIMING), rest, &an_hour()).await;
        assert_eq!(seen.error(), (-32001, "no such event".into()));
        let seen = answered(events(PRIMING), [refused(StatusCode::NOT_FOUND, "")], &an_hour()).await;
        assert_eq!(seen.error().1, "the server resumed its answer with HTTP status 404");
        let seen = answered(events(PRIMING), VecDeque::new(), &an_hour()).await;
        assert_eq!((seen.asked.len(), seen.error().0), (1, i64::from(UPSTREAM_FAILED)), "without a session");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_asked_until_the_limit_of_the_request_or_its_cancellation() {
        let endless = || (0..100).map(|_| events("")).collect::<VecDeque<_>>();
        let limit = CallLimit::new(Duration::from_millis(10_300), CancellationToken::new());
        let seen = answered(events(PRIMING), endless(), &limit).await;
        assert_eq!(seen.asked.len(), 20);
        assert!(seen.error().1.contains("exceeded the time limit"), "{:?}", seen.messages);
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let limit = CallLimit::new(Duration::from_secs(3_600), cancelled);
        let seen = answered(events(PRIMING), endless(), &limit).await;
        assert!(seen.asked.is_empty() && seen.error().1.contains("cancelled"), "{:?}", seen.messages);
    }

    /// Listens to these streams, one for each request.
    async fn heard(rest: impl Into<VecDeque<Response>>) -> Seen {
        let mut rest: VecDeque<Response> = rest.into();
        let began = Instant::now();
        let (mut messages, mut seen) = (Vec::new(), Seen::default());
        let send = |message: Bytes| {
            messages.push(String::from_utf8(message.to_vec()).unwrap());
            ready(())
        };
        let ask = |event: Option<HeaderValue>| {
            seen.note(event.as_ref(), began);
            ready(rest.pop_front())
        };
        MessageReader::new(None, send).listen(ask).await;
        Seen { messages, ..seen }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_restarts_is_listened_to_again_from_the_last_event_if_it_knows_it() {
        let seen = heard([
            events(format!("id: e-1\n{}", event(PROGRESS))),
            refused(StatusCode::SERVICE_UNAVAILABLE, ""),
            refused(StatusCode::BAD_REQUEST, ""),
            events(event(PROGRESS)),
        ])
        .await;
        assert_eq!(seen.messages, [PROGRESS, PROGRESS]);
        assert_eq!(seen.asked, at(&[("", 0), ("e-1", 10), ("e-1", 30), ("", 70), ("", 80)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_has_no_stream_is_not_asked_again() {
        let seen = heard([refused(StatusCode::METHOD_NOT_ALLOWED, ""), events(event(PROGRESS))]).await;
        assert_eq!((seen.asked.len(), seen.messages.len()), (1, 0));
    }
}
