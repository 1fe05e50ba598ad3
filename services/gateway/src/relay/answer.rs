//! Converts an upstream's answer into the response to the client.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serving::content_coding::is_coded;
use tokio::sync::mpsc;

use super::awaited_answer::{AwaitedAnswer, AwaitedRequest, may_be_answer, may_follow};
use super::lost_answer::{CAUSE_UNKNOWN, cause, lost_answer};
use super::tapped::{Leaving, Tapped};
use super::{CallLimit, Client, Over, Passing, Response, Tap};
use crate::frame::error_code::INTERNAL_ERROR;
use crate::frame::{RawId, reply};
use crate::limits::{MAX_ANSWER_BYTES, MESSAGES_AHEAD};
use crate::memory::ANSWERS;
use crate::upstream::events::is_event_stream;
use crate::upstream::fields::repeats;
use crate::upstream::text::may_be_message;
use crate::upstream::{AnswerBody, UpstreamAnswer, UpstreamError};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The header that asks intermediate proxies not to buffer (`X-Accel-Buffering`).
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The form of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// An event stream.
    Events,
    /// Any other body, usually JSON.
    Whole,
    /// A body that cannot be inspected: with a content coding, although none was requested, or with an ambiguous content
    /// type.
    Unreadable,
}

/// Passes the answer unchanged.
pub fn pass(answer: UpstreamAnswer) -> Response {
    match form(&answer) {
        AnswerForm::Events => events(answer.status, answer.headers, Body::from_stream(answer.body)),
        _ => response(answer.status, answer.headers, Body::from_stream(answer.body)),
    }
}

/// Passes the answer through a tap. The answer ends when the client disconnects. `request` is the answered message, if it
/// is a request: if its answer is withheld, or the body holds none, an error takes its place.
pub async fn watch(
    answer: UpstreamAnswer,
    tap: Box<dyn Tap>,
    request: Option<AwaitedRequest<'_>>,
) -> Response {
    if form(&answer) != AnswerForm::Events {
        return shown(answer, tap, Leaving::Dropped, request).await;
    }
    let tapped = Tapped::new(answer.body, awaited(tap, request), Leaving::Dropped);
    let body = stream::unfold(tapped, async |mut tapped| Some((ok(tapped.next().await?), tapped)));
    events(answer.status, answer.headers, Body::from_stream(body))
}

/// Passes the answer to a call through a tap, until the limit. The era determines the effect of a disconnect (see
/// `Leaving`). `id` is that of the call, if the tap does not build the error in place of a withheld answer itself.
pub async fn forward(
    answer: UpstreamAnswer,
    tap: Box<dyn Tap>,
    (client, limit): (&Client, CallLimit),
    id: Option<&RawId>,
) -> Response {
    let leaving = Leaving::Call(client.clone(), limit.clone());
    let request = id.map(|id| AwaitedRequest { id, era: client.era() });
    if form(&answer) != AnswerForm::Events {
        return shown(answer, tap, leaving, request).await;
    }
    let mut tapped = Tapped::new(answer.body, awaited(tap, request), leaving);
    let (sender, receiver) = mpsc::channel(MESSAGES_AHEAD);
    client.spawn(async move {
        while let Some(bytes) = tapped.next().await {
            // A client that does not read keeps no call open beyond the limit.
            let _gone = limit.within(sender.send(bytes)).await;
        }
    });
    events(answer.status, answer.headers, received(receiver))
}

fn awaited(tap: Box<dyn Tap>, request: Option<AwaitedRequest<'_>>) -> Box<dyn Tap> {
    match request {
        Some(request) => Box::new(AwaitedAnswer::new(tap, request.id.clone())),
        None => tap,
    }
}

/// A JSON response with a message of the gateway's own.
pub fn json(status: StatusCode, message: Bytes) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, JSON);
    response(status, headers, Body::from(message))
}

/// The response to a client that has left or cancelled, and does not read it.
pub fn cancelled() -> Response {
    error(StatusCode::BAD_GATEWAY, INTERNAL_ERROR, "cancelled")
}

/// A JSON-RPC error of the gateway's own, for a request whose id could not be read.
pub fn error(status: StatusCode, code: i32, words: &str) -> Response {
    json(status, reply::error(None, code, words, None))
}

async fn shown(
    answer: UpstreamAnswer,
    mut tap: Box<dyn Tap>,
    leaving: Leaving,
    request: Option<AwaitedRequest<'_>>,
) -> Response {
    let (status, mut headers) = (answer.status, answer.headers.clone());
    let id = request.map(|request| request.id);
    let text = match whole(answer, leaving).await {
        Ok(text) => text,
        Err(over) => {
            let cause = cause(&over);
            return last_words((status, headers), tap.over(over).await, (id, &cause));
        }
    };
    let passing = match may_be_message(&text) {
        true => tap.message(text.clone()).await,
        false => Passing::Untouched,
    };
    let last = tap.over(Over::Complete { may_follow: may_follow(status) }).await;
    let text = match passing {
        Passing::Untouched => text,
        Passing::Replaced(text) => ANSWERS.share(None).attach(text),
        Passing::Withheld => return last_words((status, headers), last, (id, CAUSE_UNKNOWN)),
    };
    if is_unanswered(&text, last.is_some(), request, status) {
        return last_words((status, headers), last, (id, CAUSE_UNKNOWN));
    }
    headers.remove(CONTENT_LENGTH);
    response(status, headers, Body::from(text))
}

/// Returns whether an answer is successful, and its body, which passes, leaves the request without an answer. `has_words`
/// tells whether the tap awaits one: then it has decided about every text that some client may take for it.
fn is_unanswered(
    body: &Bytes,
    has_words: bool,
    request: Option<AwaitedRequest<'_>>,
    status: StatusCode,
) -> bool {
    let lacks_answer =
        |request: AwaitedRequest<'_>| !request.may_follow(status) && request.lacks_answer(body);
    let is_lacking =
        || request.is_some_and(lacks_answer) || (has_words && !(may_be_message(body) && may_be_answer(body)));
    status.is_success() && is_lacking()
}

/// The response in place of a lost answer: the tap's last message, or else a JSON-RPC error with this cause. It has the
/// request's id and the status 200, or the status 502 without a request. A refusal keeps its status and headers:
/// clients begin a new session after 404, and ask for a token after 401.
fn last_words(
    (status, mut headers): (StatusCode, HeaderMap),
    words: Option<Bytes>,
    (id, cause): (Option<&RawId>, &str),
) -> Response {
    let is_for_request = words.is_some() || id.is_some();
    let words = words.unwrap_or_else(|| lost_answer(id, cause));
    if !status.is_client_error() {
        return json(if is_for_request { StatusCode::OK } else { StatusCode::BAD_GATEWAY }, words);
    }
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_TYPE, JSON);
    response(status, headers, Body::from(words))
}

/// Reads an answer's body to its end.
pub async fn whole(answer: UpstreamAnswer, leaving: Leaving) -> Result<Bytes, Over> {
    if form(&answer) == AnswerForm::Unreadable {
        return Err(Over::Broken(UpstreamError::Lost(
            "it has a content coding, though none was asked for, or is of two kinds at once".into(),
        )));
    }
    leaving.unless_left(collected(answer.body)).await?.map_err(Over::Broken)
}

async fn collected(mut body: AnswerBody) -> Result<Bytes, UpstreamError> {
    let (mut text, mut share) = (BytesMut::new(), ANSWERS.share(None));
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        share.resize(text.len() + chunk.len()).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        text.extend_from_slice(&chunk);
        if text.len() > MAX_ANSWER_BYTES {
            return Err(UpstreamError::Lost(format!("it is longer than {MAX_ANSWER_BYTES} bytes")));
        }
    }
    Ok(share.attach(text.freeze()))
}

/// The form of an answer, by its headers.
pub fn form(answer: &UpstreamAnswer) -> AnswerForm {
    if is_coded(&answer.headers) || repeats(&answer.headers, &CONTENT_TYPE) {
        return AnswerForm::Unreadable;
    }
    match is_event_stream(&answer.headers) {
        true => AnswerForm::Events,
        false if may_be_event_stream(&answer.headers) => AnswerForm::Unreadable,
        false => AnswerForm::Whole,
    }
}

/// Returns whether some client would read an event stream despite another content type. In `application/json,
/// text/event-stream`, one client reads the beginning, and another searches for the end; one of them would read
/// messages that the tap did not see.
fn may_be_event_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        value.as_bytes().to_ascii_lowercase().windows(17).any(|part| part == b"text/event-stream")
    })
}

/// A response with an event stream.
pub fn events(status: StatusCode, mut headers: HeaderMap, body: Body) -> Response {
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    headers.entry(http::header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    headers.remove(CONTENT_LENGTH);
    response(status, headers, body)
}

/// The receiver's bytes as a response body.
pub fn received(mut receiver: mpsc::Receiver<Bytes>) -> Body {
    Body::from_stream(stream::poll_fn(move |context| receiver.poll_recv(context).map(|bytes| bytes.map(ok))))
}

fn ok(bytes: Bytes) -> Result<Bytes, UpstreamError> {
    Ok(bytes)
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
