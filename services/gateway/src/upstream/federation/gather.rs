//! Complete answers of several servers to one request.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use super::answers::Awaited;
use super::names::ServerIndex;
use crate::frame::error_code;
use crate::limits;
use crate::memory::ANSWERS;
use crate::upstream::events::Splitter;
use crate::upstream::text::{Json, RpcKind, RpcMessage};
use crate::upstream::{AnswerBody, UpstreamAnswer, UpstreamError, answer};

/// One server's answer, with a body that is not read yet.
pub struct UnreadAnswer {
    /// The server's index.
    pub server: ServerIndex,
    /// The answer.
    pub answer: UpstreamAnswer,
}

/// One server's complete answer.
#[derive(Clone, Debug)]
pub struct ServerAnswer {
    /// The server's index.
    pub server: ServerIndex,
    /// The HTTP status.
    pub status: StatusCode,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// The response message, or the whole body if it was not an event stream.
    pub text: Bytes,
}

impl ServerAnswer {
    /// The JSON-RPC message; `None` if the body is none.
    pub fn message(&self) -> Option<RpcMessage<'_>> {
        RpcMessage::read_bytes(&self.text)
    }

    /// The `result`, if the HTTP status is a success.
    pub fn result(&self) -> Option<Json<'_>> {
        self.message()?.get("result").filter(|_| self.status.is_success())
    }

    /// Returns whether the server answered "Method not found".
    pub fn has_no_such_method(&self) -> bool {
        self.message().and_then(|message| message.error_code()) == Some(error_code::METHOD_NOT_FOUND)
    }

    /// Converts back into an HTTP answer, with the original `Content-Type` if the body is not a message.
    pub fn into_answer(self) -> UpstreamAnswer {
        if self.message().is_some() {
            return answer::json(self.status, self.text);
        }
        let mut answer = answer::json(self.status, self.text);
        match self.headers.get(CONTENT_TYPE) {
            Some(kind) => answer.headers.insert(CONTENT_TYPE, kind.clone()),
            None => answer.headers.remove(CONTENT_TYPE),
        };
        answer
    }
}

/// The results of the successful answers, with the servers' indices.
pub fn results<'a>(answers: impl IntoIterator<Item = &'a ServerAnswer>) -> Vec<(ServerIndex, Json<'a>)> {
    answers.into_iter().filter_map(|answer| Some((answer.server, answer.result()?))).collect()
}

/// Reads an answer until its response message. Other messages of the stream are dropped: they have no place in a merged
/// answer. The time is limited by the server ([`TimeLimited`](crate::upstream::time_limited::TimeLimited)).
///
/// # Errors
/// An [`UpstreamError`] if the body breaks off, is too long, or answers another request.
pub async fn read(unread: UnreadAnswer, awaited: &Awaited) -> Result<ServerAnswer, UpstreamError> {
    let UnreadAnswer { server, answer } = unread;
    let text = match is_events(&answer.headers) {
        true => response(answer.body, server, awaited).await?,
        false => whole(answer.body, limits::MAX_GATHERED_BYTES).await?,
    };
    if !awaited.takes(server, &text) {
        return Err(other_answer());
    }
    Ok(ServerAnswer { server, status: answer.status, headers: answer.headers, text })
}

/// Returns whether the body is an event stream.
pub fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // Some clients look for the media type anywhere in the header.
    kind.is_some_and(|kind| kind.to_ascii_lowercase().contains("text/event-stream"))
}

/// The error for a server that sends the response to another request.
pub fn other_answer() -> UpstreamError {
    UpstreamError::Lost("the server gave the answer to another request".to_owned())
}

/// Reads a body to its end.
///
/// # Errors
/// [`UpstreamError::Lost`] if it breaks off, is longer than `most` bytes, or the memory budget for answers is used up.
pub async fn whole(mut body: AnswerBody, most: usize) -> Result<Bytes, UpstreamError> {
    let (mut all, mut share) = (BytesMut::new(), ANSWERS.share(None));
    while let Some(part) = body.next().await {
        let part = part?;
        share.resize(all.len() + part.len()).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        all.extend_from_slice(&part);
        if all.len() > most {
            return Err(UpstreamError::Lost(format!("the answer is longer than {most} bytes")));
        }
    }
    Ok(share.attach(all.freeze()))
}

async fn response(
    mut body: AnswerBody,
    server: ServerIndex,
    awaited: &Awaited,
) -> Result<Bytes, UpstreamError> {
    let mut splitter = Splitter::default();
    while let Some(chunk) = body.next().await {
        let events = splitter.push(chunk?).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        for data in events.iter().filter_map(crate::upstream::events::Event::data) {
            let message = RpcMessage::read_bytes(&data);
            if message.is_some_and(|message| message.kind == RpcKind::Response)
                && awaited.takes(server, &data)
            {
                return Ok(data);
            }
        }
    }
    Err(UpstreamError::Lost("the stream ended without an answer".to_owned()))
}
