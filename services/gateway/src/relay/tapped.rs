//! An event stream that passes through a tap.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use futures::StreamExt;

use super::Client;
use super::{Over, Passing, Tap};
use crate::limits::ORPHAN_TIME;
use crate::memory::ANSWERS;
use crate::upstream::events::{self, Event, Splitter};
use crate::upstream::{AnswerBody, UpstreamError};
use admission::principal::Era;

/// The effect of a client's disconnect on the answer.
pub enum Leaving {
    /// The reader of the answer is dropped, and the answer with it.
    Dropped,
    /// The answer is cancelled.
    Cancels(Client),
    /// The answer is read to its end, at most for [`ORPHAN_TIME`].
    ReadOn(Client),
}

impl Leaving {
    /// The effect on the answer to a call, by the client's era.
    pub fn of_call(client: &Client) -> Self {
        match client.era() {
            Era::Modern => Self::Cancels(client.clone()),
            Era::Legacy => Self::ReadOn(client.clone()),
        }
    }

    /// Runs `work`, unless a disconnect ends it first.
    ///
    /// # Errors
    /// [`Over`] if the disconnect ended it.
    pub async fn unless_left<T>(&self, work: impl Future<Output = T>) -> Result<T, Over> {
        match self {
            Self::Dropped => Ok(work.await),
            Self::Cancels(client) => tokio::select! {
                biased;
                done = work => Ok(done),
                _ = client.gone() => Err(Over::Abandoned),
            },
            Self::ReadOn(client) => tokio::select! {
                biased;
                done = work => Ok(done),
                over = orphaned(client) => Err(over),
            },
        }
    }
}

/// Waits until an answer without a reader need not be read any further: the client resumed its stream, or
/// [`ORPHAN_TIME`] has passed since the disconnect.
async fn orphaned(client: &Client) -> Over {
    let since = client.gone().await;
    tokio::select! {
        () = client.resumed() => Over::Resumed,
        () = tokio::time::sleep_until(since + ORPHAN_TIME) => Over::Broken(UpstreamError::TimedOut),
    }
}

/// The events of an answer, after the tap.
pub struct Tapped {
    body: Option<AnswerBody>,
    splitter: Splitter,
    tap: Box<dyn Tap>,
    leaving: Leaving,
    ready: VecDeque<Bytes>,
    over: bool,
}

impl Tapped {
    /// Passes the events of this body through the tap.
    pub fn new(body: AnswerBody, tap: Box<dyn Tap>, leaving: Leaving) -> Self {
        let splitter = Splitter::default();
        Self { body: Some(body), splitter, tap, leaving, ready: VecDeque::new(), over: false }
    }

    /// The next bytes for the client.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            if let Some(how) = self.read().await {
                self.over = true;
                self.body = None;
                self.ready.extend(self.tap.over(how).await.map(|last| events::message(&last)));
            }
        }
    }

    /// Reads a chunk; returns how the body ended, if it did.
    async fn read(&mut self) -> Option<Over> {
        let body = self.body.as_mut()?;
        let chunk = match self.leaving.unless_left(body.next()).await {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(error))) => return Some(Over::Broken(error)),
            Ok(None) => return Some(Over::Complete),
            Err(over) => return Some(over),
        };
        let events = match self.splitter.push(chunk) {
            Ok(events) => events,
            Err(error) => return Some(Over::Broken(UpstreamError::Lost(error.to_string()))),
        };
        for event in events {
            let goes_on = self.shown(event).await;
            self.ready.extend(goes_on);
        }
        None
    }

    async fn shown(&mut self, event: Event) -> Option<Bytes> {
        let Some(text) = event.data() else { return Some(event.into_raw()) };
        match self.tap.message(text).await {
            Passing::Untouched => Some(event.into_raw()),
            Passing::Replaced(text) => Some(ANSWERS.share(None).attach(event.with_data(&text))),
            Passing::Withheld => event.without_data(),
        }
    }
}
