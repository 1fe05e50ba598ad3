//! The answers of several servers to one request, read to the end.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use super::answers::Awaited;
use super::names::Whose;
use crate::limits;
use crate::memory::ANSWERS;
use crate::relay::events::Splitter;
use crate::upstream::text::{Json, Kind, Message};
use crate::upstream::{Answer, AnswerBody, UpstreamError, answer};

/// What a server said.
#[derive(Clone, Debug)]
pub struct Said {
    /// Which one.
    pub whose: Whose,
    /// With which status.
    pub status: StatusCode,
    /// With which headers.
    pub headers: HeaderMap,
    /// The message that answers, or whatever the body was.
    pub text: Bytes,
}

impl Said {
    /// The message, if there is one.
    pub fn message(&self) -> Option<Message<'_>> {
        Message::read(std::str::from_utf8(&self.text).ok()?)
    }

    /// What it says, if it is a success.
    pub fn result(&self) -> Option<Json<'_>> {
        self.message()?.get("result").filter(|_| self.status.is_success())
    }

    /// Whether the server does not have this method.
    pub fn has_no_such_method(&self) -> bool {
        self.message().and_then(|message| message.error_code()) == Some(answer::NO_METHOD)
    }

    /// The answer again.
    pub fn into_answer(self) -> Answer {
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

/// Reads an answer up to the message that answers. What a server says on the way there has no place in one answer of
/// several, and is dropped.
///
/// # Errors
/// If it breaks, or is too long, or takes too long.
pub async fn read(whose: Whose, answer: Answer, awaited: &Awaited) -> Result<Said, UpstreamError> {
    let reading = async {
        match is_events(&answer.headers) {
            true => response(answer.body, whose, awaited).await,
            false => whole(answer.body, limits::MAX_GATHERED_BYTES).await,
        }
    };
    let text = timeout(limits::GATHER_TIME, reading).await.map_err(|_| UpstreamError::TimedOut)??;
    if !awaited.takes(whose, &text) {
        return Err(other_answer());
    }
    Ok(Said { whose, status: answer.status, headers: answer.headers, text })
}

/// Whether a body is a stream of events.
pub fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // Some clients look for it anywhere in the header.
    kind.is_some_and(|kind| kind.to_ascii_lowercase().contains("text/event-stream"))
}

/// A server answered what it was not asked.
pub fn other_answer() -> UpstreamError {
    UpstreamError::Lost("the server gave the answer to another request".to_owned())
}

/// A body, all of it.
///
/// # Errors
/// If it breaks or is longer than this.
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

async fn response(mut body: AnswerBody, whose: Whose, awaited: &Awaited) -> Result<Bytes, UpstreamError> {
    let mut splitter = Splitter::default();
    while let Some(chunk) = body.next().await {
        let events = splitter.push(chunk?).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        for data in events.iter().filter_map(crate::relay::events::Event::data) {
            let message = std::str::from_utf8(&data).ok().and_then(Message::read);
            if message.is_some_and(|message| message.kind == Kind::Response) && awaited.takes(whose, &data) {
                return Ok(data);
            }
        }
    }
    Err(UpstreamError::Lost("the stream ended without an answer".to_owned()))
}
