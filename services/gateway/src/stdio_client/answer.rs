//! The messages of a response, one by one, and those of the streams that go on with it.
//!
//! A server of 2025-11-25 may end the stream of a request after an event with an id, and the client asks for the rest with a
//! GET after a pause. It may do so again and again, so a limit ends the wait. It may also send the answer on another stream.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderValue;
use http_body_util::{BodyExt, Limited};
use jose::json;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::open_requests::{EndSignals, OpenRequests};
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
    /// All open requests, some of which other responses answer.
    open: &'a OpenRequests,
    position: StreamPosition,
    /// `true` while streams are read that resume the request's own. They may stay open after the answer.
    is_resumed: bool,
    /// Cancelled once resumed streams need not be read on, since the answer has come on another stream.
    answered: CancellationToken,
    send: S,
}

impl<'a, S, F> MessageReader<'a, S>
where
    S: FnMut(Bytes) -> F,
    F: Future<Output = ()>,
{
    /// A reader of the answer to the request `id`, or of messages that answer none.
    pub fn new(id: Option<&'a RawId>, open: &'a OpenRequests, send: S) -> Self {
        let (position, answered) = (StreamPosition::default(), CancellationToken::new());
        Self { awaited: id, open, position, is_resumed: false, answered, send }
    }

    /// Reads the response to the request, and for at most this time after its end what `resume` gives after an event, as long
    /// as the answer has not come on any stream. If it does not come, the last message is an error for the request. One that
    /// comes on another stream has been handed over when this returns. `resume` gives `None` if nothing can be resumed.
    pub async fn answer<R: Future<Output = Option<Response>>>(
        mut self,
        response: Response,
        (most, signals): (Duration, EndSignals),
        resume: impl FnMut(HeaderValue) -> R,
    ) {
        let status = response.status();
        let mut why = self.read(response).await.err();
        self.answered = signals.answered;
        if self.awaited.is_some() && why.is_none() {
            let limit = CallLimit::new(most, signals.cancelled);
            why = match limit.within(self.resumed(resume)).await {
                Ok(why) => why,
                Err(given_up) => Some(given_up.to_string()),
            };
        }
        let Some(id) = self.awaited else { return };
        if self.answered.is_cancelled() {
            // This process may end as soon as no request is open.
            signals.handed_over.cancelled().await;
            return;
        }
        let words =
            why.unwrap_or_else(|| format!("the server answered with HTTP status {}", status.as_u16()));
        (self.send)(lost_answer(Some(id), &words)).await;
    }

    /// Reads the stream of the server's own messages, which `ask` opens after the last event, and asks for it again when it
    /// has ended, until the server refuses it for good. `ask` gives `None` without a session.
    pub async fn listen<R: Future<Output = Option<Response>>>(
        mut self,
        mut ask: impl FnMut(Option<HeaderValue>) -> R,
    ) {
        while let Some(response) = ask(self.position.last_event().cloned()).await {
            let status = response.status();
            if status.is_success() {
                // What cannot be read for want of memory is asked for again.
                let _unread = self.read(response).await;
            } else if is_temporary(status) || self.position.last_event().is_some() {
                self.position.refused(status);
            } else {
                return;
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
    /// can be resumed, or the answer has come on another stream.
    async fn resumed<R: Future<Output = Option<Response>>>(
        &mut self,
        mut resume: impl FnMut(HeaderValue) -> R,
    ) -> Option<String> {
        self.is_resumed = true;
        while self.awaited.is_some() {
            let (last_event, pause) = (self.position.last_event()?.clone(), self.position.pause());
            let resumed = async {
                tokio::time::sleep(pause).await;
                resume(last_event).await
            };
            let response = self.answered.run_until_cancelled(resumed).await??;
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
        // A GET is refused with a whole body; on the stream that it resumes, an error without an id concerns something else.
        let may_refuse = !self.is_resumed;
        while let Some(frame) = self.answered.run_until_cancelled(body.frame()).await.flatten() {
            let Ok(chunk) = frame.map_err(|error| error.to_string())?.into_data() else { continue };
            for event in splitter.push(chunk).map_err(|error| error.to_string())? {
                self.position.advance(&event);
                if let Some(message) = event.data() {
                    self.pass(message, may_refuse).await;
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
            self.pass(text, true).await;
        }
        Ok(())
    }

    /// Hands over a message. If it `may_refuse` the awaited request, an error without an id is the answer.
    async fn pass(&mut self, message: Bytes, may_refuse: bool) {
        let Ok(reply) = Reply::parse(message.clone()) else { return (self.send)(message).await };
        let is_refusal = may_refuse && reply.is_error() && reply.id().is_none();
        let Some(id) = self.awaited.filter(|id| is_refusal || reply.answers(id)) else {
            let handed_over = self.open.answer(&reply);
            (self.send)(message).await;
            drop(handed_over);
            return;
        };
        self.awaited = None;
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

    use futures::{StreamExt, stream};
    use http::StatusCode;
    use http::header::CONTENT_TYPE;
    use tokio::time::Instant;

    use super::*;
    use crate::frame::Frame;

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

    fn an_hour() -> (Duration, EndSignals) {
        (Duration::from_secs(3_600), EndSignals::default())
    }

    /// The request 1.
    fn ping() -> Frame {
        Frame::parse(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).unwrap()
    }

    /// A stream that stays open without an event.
    fn silent() -> Response {
        events(Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()))
    }

    /// Messages that a client got, and requests that its server got.
    #[derive(Default)]
    struct Seen {
        messages: Vec<String>,
        /// The event after which a stream was asked for, and when, in tenths of a second.
        requests: Vec<(String, u128)>,
    }

    impl Seen {
        fn note(&mut self, event: Option<&HeaderValue>, began: Instant) {
            let event = event.map(|event| event.to_str().unwrap().to_owned()).unwrap_or_default();
            self.requests.push((event, began.elapsed().as_millis() / 100));
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
    async fn answered(
        first: Response,
        rest: impl Into<VecDeque<Response>>,
        limit: (Duration, EndSignals),
    ) -> Seen {
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
        let open = OpenRequests::default();
        MessageReader::new(Some(&id), &open, send).answer(first, limit, resume).await;
        Seen { messages, ..seen }
    }

    fn at(requests: &[(&str, u128)]) -> Vec<(String, u128)> {
        requests.iter().map(|(event, time)| ((*event).to_owned(), *time)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_read_from_the_streams_that_the_server_opens_later_each_after_its_pause() {
        let rest = [events(format!("id: e-2\n{}", event(PROGRESS))), events(event(ANSWER))];
        let seen = answered(events(PRIMING), rest, an_hour()).await;
        assert_eq!(seen.messages, [PROGRESS, ANSWER]);
        assert_eq!(seen.requests, at(&[("e-1", 5), ("e-2", 10)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stays_open_after_the_answer_is_not_read_on() {
        let answer = stream::once(ready(Ok::<_, Infallible>(Bytes::from(event(ANSWER)))));
        let rest = [events(Body::from_stream(answer.chain(stream::pending())))];
        let seen = answered(events(PRIMING), rest, an_hour()).await;
        assert_eq!(seen.messages, [ANSWER]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_cannot_be_reached_is_asked_again_after_growing_pauses() {
        let gone = || refused(StatusCode::BAD_GATEWAY, r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#);
        let seen = answered(events(PRIMING), [gone(), gone(), events(event(ANSWER))], an_hour()).await;
        assert_eq!(seen.messages, [ANSWER]);
        assert_eq!(seen.requests, at(&[("e-1", 5), ("e-1", 25), ("e-1", 65)]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_without_an_event_id_cannot_be_resumed() {
        let seen = answered(events("data: \n\n"), [events(event(ANSWER))], an_hour()).await;
        assert_eq!(
            seen.error(),
            (i64::from(UPSTREAM_FAILED), "the server answered with HTTP status 200".into())
        );
        assert!(seen.requests.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_to_resume_is_the_error_for_the_request() {
        let unknown = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no such event"}}"#;
        let rest = [refused(StatusCode::NOT_FOUND, unknown)];
        let seen = answered(events(PRIMING), rest, an_hour()).await;
        assert_eq!(seen.error(), (-32001, "no such event".into()));
        let seen = answered(events(PRIMING), [refused(StatusCode::NOT_FOUND, "")], an_hour()).await;
        assert_eq!(seen.error().1, "the server resumed its answer with HTTP status 404");
        let seen = answered(events(PRIMING), VecDeque::new(), an_hour()).await;
        assert_eq!(
            (seen.requests.len(), seen.error().0),
            (1, i64::from(UPSTREAM_FAILED)),
            "without a session"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_asked_until_the_limit_of_the_request_or_its_cancellation() {
        let endless = || (0..100).map(|_| events("")).collect::<VecDeque<_>>();
        let limit = (Duration::from_millis(10_300), EndSignals::default());
        let seen = answered(events(PRIMING), endless(), limit).await;
        assert_eq!(seen.requests.len(), 20);
        assert!(seen.error().1.contains("exceeded the time limit"), "{:?}", seen.messages);
        let limit = an_hour();
        limit.1.cancelled.cancel();
        let seen = answered(events(PRIMING), endless(), limit).await;
        assert!(seen.requests.is_empty() && seen.error().1.contains("cancelled"), "{:?}", seen.messages);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_wait_begins_when_the_first_stream_has_ended() {
        let (hours, _) = an_hour();
        let late = stream::once(async move {
            tokio::time::sleep(hours * 2).await;
            Ok::<_, Infallible>(Bytes::from_static(PRIMING.as_bytes()))
        });
        let first = events(Body::from_stream(late));
        let seen = answered(first, [events(event(ANSWER))], an_hour()).await;
        assert_eq!(seen.messages, [ANSWER]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_answered_on_another_stream_is_not_answered_twice() {
        let (most, _) = an_hour();
        let (open, request) = (OpenRequests::default(), ping());
        // The answer comes while the resumed stream is open, or before the end of a first stream that cannot be resumed.
        for (first, rest, after) in
            [(events(PRIMING), vec![silent()], 5), (events("data: \n\n"), Vec::new(), 0)]
        {
            let (signals, began) = (open.open(&request), Instant::now());
            let other = async {
                tokio::time::sleep(Duration::from_secs(after)).await;
                MessageReader::new(None, &open, |_| ready(())).read(events(event(ANSWER))).await
            };
            let own = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                answered(first, rest, (most, signals)).await
            };
            let (seen, read) = tokio::join!(own, other);
            assert!(read.is_ok() && seen.messages.is_empty(), "{:?}", seen.messages);
            assert!(began.elapsed() < most, "it is not waited for");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_answered_on_another_stream_is_open_until_the_client_has_the_answer() {
        let (most, _) = an_hour();
        let open = OpenRequests::default();
        for (first, rest) in [(events(PRIMING), vec![silent()]), (events("data: \n\n"), Vec::new())] {
            let (signals, began) = (open.open(&ping()), Instant::now());
            let busy = Duration::from_secs(9);
            let other = async {
                let send = |_: Bytes| tokio::time::sleep(busy);
                MessageReader::new(None, &open, send).read(events(event(ANSWER))).await
            };
            let own = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                (answered(first, rest, (most, signals)).await, began.elapsed())
            };
            let ((seen, waited), read) = tokio::join!(own, other);
            assert!(read.is_ok() && seen.messages.is_empty(), "{:?}", seen.messages);
            assert!((busy..most).contains(&waited), "{waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_without_an_id_on_a_resumed_stream_is_not_the_answer() {
        let unrelated = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"unreadable"}}"#;
        let rest = [events(event(unrelated) + &event(ANSWER))];
        let seen = answered(events(PRIMING), rest, an_hour()).await;
        assert_eq!(seen.messages, [unrelated, ANSWER]);
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
        let open = OpenRequests::default();
        MessageReader::new(None, &open, send).listen(ask).await;
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
        assert_eq!(seen.requests, at(&[("", 0), ("e-1", 10), ("e-1", 30), ("", 70), ("", 80)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_has_no_stream_is_not_asked_again() {
        for status in [
            StatusCode::METHOD_NOT_ALLOWED,
            StatusCode::BAD_REQUEST,
            StatusCode::NOT_FOUND,
            StatusCode::NOT_IMPLEMENTED,
        ] {
            let seen = heard([refused(status, ""), events(event(PROGRESS))]).await;
            assert_eq!((seen.requests.len(), seen.messages.len()), (1, 0), "{status}");
        }
        let seen = heard([refused(StatusCode::BAD_GATEWAY, ""), events(event(PROGRESS))]).await;
        assert_eq!(seen.messages, [PROGRESS], "it cannot be reached for now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_ends_without_an_event_goes_on_after_the_last_one() {
        let seen = heard([events(format!("id: e-1\n{}", event(PROGRESS))), events(""), events("")]).await;
        assert_eq!(seen.requests, at(&[("", 0), ("e-1", 10), ("e-1", 20), ("e-1", 30)]));
    }
}
