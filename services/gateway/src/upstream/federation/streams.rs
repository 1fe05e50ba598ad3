//! Response bodies on their way from the servers to the federation's client: each message with the names that the
//! client sees, each event with an id that contains its server.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, select_all};
use futures::{StreamExt, future};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use tokio::time::timeout;

use super::answers::Awaited;
use super::gather::{self, UnreadAnswer, is_events};
use super::names::{ServerIndex, ServerNames};
use super::sessions::FederatedSession;
use super::{merge, rewrite};
use crate::limits;
use crate::upstream::events::{Event, Splitter};
use crate::upstream::request::SESSION;
use crate::upstream::text::Json;
use crate::upstream::{AnswerBody, UpstreamAnswer, UpstreamError, answer};

/// One server's answer, rewritten for the client. Responses to anything but the awaited request are removed.
pub fn passed(names: Arc<ServerNames>, unread: UnreadAnswer, awaited: Awaited) -> UpstreamAnswer {
    let UnreadAnswer { server, mut answer } = unread;
    answer.headers.remove(SESSION);
    answer.headers.remove(CONTENT_LENGTH);
    if is_events(&answer.headers) {
        answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        let renamed = events(answer.body).map(move |event| {
            Ok(renamed(&names, server, event?, &awaited, |id| Some(names.event_outside(server, id))))
        });
        answer.body = renamed.boxed();
        return answer;
    }
    // The body is rewritten whatever its `Content-Type`, since some clients read a message anyway.
    let body = answer.body;
    let renamed = async move {
        let text = gather::whole(body, limits::MAX_ANSWER_BYTES).await?;
        match awaited.takes(server, &text) {
            true => Ok(rewrite::outward(&names, server, &text).unwrap_or(text)),
            false => Err(gather::other_answer()),
        }
    };
    answer.body = stream::once(renamed).boxed();
    answer
}

/// The session streams of several servers as one stream. It ends when one of them ends, so that the client resumes all
/// of them together: each event id contains the positions of all servers.
pub fn common(
    names: Arc<ServerNames>,
    session: &Arc<FederatedSession>,
    mut last_events: Vec<Option<String>>,
    open: Vec<UnreadAnswer>,
) -> UpstreamAnswer {
    let awaited = Awaited::Session(Arc::clone(session));
    let streams = open.into_iter().map(|stream| (stream.server, events(stream.answer.body))).collect();
    let renamed = until_one_ends(streams).map(move |(server, event)| {
        Ok(renamed(&names, server, event?, &awaited, |id| {
            last_events[server] = Some(id.to_owned());
            let all = names.place_outside(&last_events);
            (all.len() <= limits::MAX_PACKED_BYTES).then_some(all)
        }))
    });
    answer::events(renamed.boxed())
}

/// The subscriptions of several servers as one stream, with one merged acknowledgement. It ends when one of them ends.
///
/// # Errors
/// An [`UpstreamError`] if a server does not acknowledge within `ACKNOWLEDGEMENT_TIME`.
pub async fn subscribed(
    names: Arc<ServerNames>,
    open: Vec<UnreadAnswer>,
    awaited: Awaited,
) -> Result<UpstreamAnswer, UpstreamError> {
    let acknowledging = open.into_iter().map(|UnreadAnswer { server, answer }| async move {
        let mut events = events(answer.body);
        while let Some(event) = events.next().await {
            if let Some(ack) = event?.data() {
                return Ok((server, ack, events));
            }
        }
        Err(UpstreamError::Lost("a subscription ended before it began".to_owned()))
    });
    let acknowledged = timeout(limits::ACKNOWLEDGEMENT_TIME, future::try_join_all(acknowledging));
    let acknowledged = acknowledged.await.map_err(|_| UpstreamError::TimedOut)??;
    let texts: Vec<(ServerIndex, String)> = acknowledged
        .iter()
        .map(|(server, ack, _)| (*server, String::from_utf8_lossy(ack).into_owned()))
        .collect();
    let acks: Vec<_> =
        texts.iter().filter_map(|(server, text)| Some((*server, Json::whole(text)?))).collect();
    let ack = answer::event(None, merge::acknowledged(&names, &acks).as_bytes());
    let streams = acknowledged.into_iter().map(|(server, _, events)| (server, events)).collect();
    let rest = until_one_ends(streams).map(move |(server, event)| {
        Ok(renamed(&names, server, event?, &awaited, |id| Some(names.event_outside(server, id))))
    });
    Ok(answer::events(stream::once(future::ready(Ok(ack))).chain(rest).boxed()))
}

/// Separates the answers to opening a stream. Returns the open streams, or the refusal to pass on; `Err(None)` if no
/// server was asked. Refusals with 404 or 405 are ignored while another server's stream is open.
pub fn opened(answers: Vec<UnreadAnswer>) -> Result<Vec<UnreadAnswer>, Option<Box<UnreadAnswer>>> {
    let (open, mut refusals): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|unread| unread.answer.status.is_success() && is_events(&unread.answer.headers));
    let is_serious = |refusal: &UnreadAnswer| {
        !matches!(refusal.answer.status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND)
            || open.is_empty()
    };
    match refusals.iter().position(is_serious) {
        Some(at) => Err(Some(Box::new(refusals.swap_remove(at)))),
        None if open.is_empty() => Err(None),
        None => Ok(open),
    }
}

type Events = BoxStream<'static, Result<Event, UpstreamError>>;

fn events(body: AnswerBody) -> Events {
    let mut splitter = Splitter::default();
    body.flat_map(move |chunk| {
        let cut = chunk
            .and_then(|chunk| splitter.push(chunk).map_err(|error| UpstreamError::Lost(error.to_string())));
        stream::iter(match cut {
            Ok(events) => events.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    })
    .boxed()
}

fn until_one_ends(
    streams: Vec<(ServerIndex, Events)>,
) -> impl futures::Stream<Item = (ServerIndex, Result<Event, UpstreamError>)> + Send + 'static {
    let marked = streams.into_iter().map(|(server, events)| {
        let end = stream::once(future::ready(None));
        events.map(move |event| Some((server, event))).chain(end).boxed()
    });
    select_all(marked).take_while(|next| future::ready(next.is_some())).filter_map(future::ready)
}

fn renamed(
    names: &ServerNames,
    server: ServerIndex,
    event: Event,
    awaited: &Awaited,
    id_outside: impl FnMut(&str) -> Option<String>,
) -> Bytes {
    let raw = match event.data() {
        Some(data) if !awaited.takes(server, &data) => event.without_data().unwrap_or_default(),
        Some(data) => match rewrite::outward(names, server, &data) {
            Some(data) => event.with_data(&data),
            None => event.into_raw(),
        },
        None => event.into_raw(),
    };
    with_id(raw, id_outside)
}

/// The event with its id rewritten, or without id if `outside` returns `None`.
fn with_id(raw: Bytes, mut outside: impl FnMut(&str) -> Option<String>) -> Bytes {
    let mut out = Vec::with_capacity(raw.len() + 32);
    let mut changed = false;
    for line in raw.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
        let text = line.trim_ascii_end();
        let id = text.strip_prefix(b"id:").map(|id| id.strip_prefix(b" ").unwrap_or(id));
        match id.and_then(|id| std::str::from_utf8(id).ok()).filter(|id| !id.is_empty()) {
            None => out.extend_from_slice(line),
            Some(id) => {
                changed = true;
                if let Some(id) = outside(id) {
                    out.extend_from_slice(b"id: ");
                    out.extend_from_slice(id.as_bytes());
                    out.extend_from_slice(&line[text.len()..]);
                }
            }
        }
    }
    if changed { out.into() } else { raw }
}
