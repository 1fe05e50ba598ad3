//! An upstream's answer as a response to the client.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::sync::mpsc;

use super::tapped::{Leaving, Tapped};
use super::{Over, Passing, Tap};
use crate::front::{Client, Response};
use crate::limits::{MAX_ANSWER_BYTES, MESSAGES_AHEAD};
use crate::memory::ANSWERS;
use crate::upstream::{Answer, AnswerBody, UpstreamError};

/// Asks proxies on the way not to buffer.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A stream of events.
    Events,
    /// Anything else: JSON, mostly.
    Whole,
    /// It is compressed, though nobody asked for that, or two kinds at once: it cannot be looked at.
    Unreadable,
}

/// The answer as it is.
pub fn pass(answer: Answer) -> Response {
    match form(&answer) {
        Form::Events => events(answer.status, answer.headers, Body::from_stream(answer.body)),
        _ => response(answer.status, answer.headers, Body::from_stream(answer.body)),
    }
}

/// The answer, looked at on its way; it ends when the client goes away.
pub async fn watch(answer: Answer, tap: Box<dyn Tap>) -> Response {
    if form(&answer) != Form::Events {
        return shown(answer, tap, Leaving::Dropped).await;
    }
    let tapped = Tapped::new(answer.body, tap, Leaving::Dropped);
    let body = stream::unfold(tapped, async |mut tapped| Some((ok(tapped.next().await?), tapped)));
    events(answer.status, answer.headers, Body::from_stream(body))
}

/// The answer to a call, looked at on its way.
pub async fn forward(answer: Answer, tap: Box<dyn Tap>, client: &Client) -> Response {
    let leaving = Leaving::of_call(client);
    if form(&answer) != Form::Events {
        return shown(answer, tap, leaving).await;
    }
    let mut tapped = Tapped::new(answer.body, tap, leaving);
    let (sender, receiver) = mpsc::channel(MESSAGES_AHEAD);
    client.spawn(async move {
        while let Some(bytes) = tapped.next().await {
            let _gone = sender.send(bytes).await;
        }
    });
    events(answer.status, answer.headers, received(receiver))
}

/// A message of the gateway's own, as JSON.
pub fn json(status: StatusCode, message: Bytes) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response(status, headers, Body::from(message))
}

/// A JSON-RPC error of the gateway's own, without the id of a request that could not be read.
pub fn error(status: StatusCode, code: i32, words: &str) -> Response {
    json(status, crate::frame::reply::error(None, code, words, None))
}

async fn shown(answer: Answer, mut tap: Box<dyn Tap>, leaving: Leaving) -> Response {
    let (status, mut headers) = (answer.status, answer.headers.clone());
    let text = match whole(answer, leaving).await {
        Ok(text) => text,
        Err(over) => return last_words(tap.over(over).await),
    };
    if !is_message(&text) {
        tap.over(Over::Complete).await;
        return response(status, headers, Body::from(text));
    }
    let passing = tap.message(text.clone()).await;
    let last = tap.over(Over::Complete).await;
    let text = match (passing, last) {
        (Passing::Untouched, _) => text,
        (Passing::Replaced(text), _) | (Passing::Withheld, Some(text)) => ANSWERS.share(None).attach(text),
        (Passing::Withheld, None) => return last_words(None),
    };
    headers.remove(CONTENT_LENGTH);
    response(status, headers, Body::from(text))
}

/// What is said in place of an answer that was lost.
fn last_words(words: Option<Bytes>) -> Response {
    match words {
        Some(words) => json(StatusCode::OK, words),
        None => error(StatusCode::BAD_GATEWAY, -32603, "the upstream's answer is lost"),
    }
}

/// All of an answer.
pub async fn whole(answer: Answer, leaving: Leaving) -> Result<Bytes, Over> {
    if form(&answer) == Form::Unreadable {
        return Err(Over::Broken(UpstreamError::Lost(
            "it is compressed, though nobody asked for that, or of two kinds at once".into(),
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

/// Whether the text can be a message: some clients read one whatever the content type says, and with a mark of byte order, or
/// in UTF-16 and UTF-32, which are the same characters between NULs.
pub fn is_message(text: &[u8]) -> bool {
    let is_before =
        |byte: &u8| matches!(byte, 0 | 0xef | 0xbb | 0xbf | 0xfe | 0xff) || byte.is_ascii_whitespace();
    matches!(text.iter().find(|byte| !is_before(byte)), Some(b'{' | b'['))
}

/// The form of an answer.
pub fn form(answer: &Answer) -> Form {
    let encoding = answer.headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Form::Unreadable;
    }
    match is_event_stream(&answer.headers) {
        true => Form::Events,
        false if may_be_event_stream(&answer.headers) => Form::Unreadable,
        false => Form::Whole,
    }
}

/// Whether the headers announce a stream of events.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    let media = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    media.eq_ignore_ascii_case(b"text/event-stream")
}

/// Whether somebody would read events all the same: of `application/json, text/event-stream` one client reads the beginning,
/// and another one looks for the end. What one of them sees, we would not have looked at.
fn may_be_event_stream(headers: &HeaderMap) -> bool {
    let all = headers.get_all(CONTENT_TYPE).iter();
    all.into_iter().any(|value| {
        value.as_bytes().to_ascii_lowercase().windows(17).any(|part| part == b"text/event-stream")
    })
}

/// A stream of events.
pub fn events(status: StatusCode, mut headers: HeaderMap, body: Body) -> Response {
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    headers.entry(http::header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    headers.remove(CONTENT_LENGTH);
    response(status, headers, body)
}

/// What is sent, as a body.
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
