//! The messages of a response, one by one.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use jose::json;
use serde_json::Value;

use crate::frame::RawId;
use crate::frame::reply::{self, Reply};
use crate::limits::MAX_ANSWER_BYTES;
use crate::relay::{Response, UPSTREAM_FAILED, lost_answer};
use crate::upstream::events::{Splitter, is_event_stream};
use crate::upstream::text::may_be_message;

/// Hands each message of a response to `send`. If none answers the request `id`, the last one is an error for it.
pub async fn forward<F: Future<Output = ()>>(
    response: Response,
    id: Option<&RawId>,
    mut send: impl FnMut(Bytes) -> F,
) {
    let (head, body) = response.into_parts();
    let mut awaited = id;
    let answered = match is_event_stream(&head.headers) {
        true => events(body, &mut awaited, &mut send).await,
        false => whole(body, &mut awaited, &mut send).await,
    };
    if let (Some(id), why) = (awaited, answered.err()) {
        let words =
            why.unwrap_or_else(|| format!("the server answered with HTTP status {}", head.status.as_u16()));
        send(lost_answer(Some(id), &words)).await;
    }
}

async fn events<F: Future<Output = ()>>(
    mut body: Body,
    awaited: &mut Option<&RawId>,
    send: &mut impl FnMut(Bytes) -> F,
) -> Result<(), String> {
    let mut splitter = Splitter::default();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(|error| error.to_string())?.into_data() else { continue };
        for event in splitter.push(chunk).map_err(|error| error.to_string())? {
            if let Some(message) = event.data() {
                pass(message, awaited, send).await;
            }
        }
    }
    Ok(())
}

async fn whole<F: Future<Output = ()>>(
    body: Body,
    awaited: &mut Option<&RawId>,
    send: &mut impl FnMut(Bytes) -> F,
) -> Result<(), String> {
    let read = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
    let text =
        read.map_err(|error| format!("the answer, of at most {MAX_ANSWER_BYTES} bytes: {error}"))?.to_bytes();
    if may_be_message(&text) {
        pass(text, awaited, send).await;
    }
    Ok(())
}

async fn pass<F: Future<Output = ()>>(
    message: Bytes,
    awaited: &mut Option<&RawId>,
    send: &mut impl FnMut(Bytes) -> F,
) {
    let (Some(id), Ok(reply)) = (*awaited, Reply::parse(message.clone())) else {
        return send(message).await;
    };
    let is_refusal = reply.is_error() && reply.id().is_none();
    if is_refusal || reply.answers(id) {
        *awaited = None;
    }
    send(if is_refusal { refusal(id, &reply) } else { message }).await;
}

/// Returns the error for a request whose id the front end has not read.
fn refusal(id: &RawId, error: &Reply) -> Bytes {
    let code = error.error_member("code").and_then(|code| code.parse().ok()).unwrap_or(UPSTREAM_FAILED);
    let words = error.error_member("message").and_then(|words| json::parse_text(words).ok());
    let words = words.as_ref().and_then(Value::as_str).unwrap_or("refused");
    reply::error(Some(id), code, words, None)
}
