//! A stream of events with somebody looking on.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use futures::StreamExt;

use super::events::{self, Event, Splitter};
use super::{Over, Passing, Tap};
use crate::front::Client;
use crate::limits::ORPHAN_TIME;
use crate::memory::ANSWERS;
use crate::upstream::{AnswerBody, UpstreamError};
use admission::principal::Era;

/// What the client's going away means for the answer.
pub enum Leaving {
    /// Whoever reads drops the answer.
    Dropped,
    /// It is cancelled.
    Cancels(Client),
    /// It is read to its end, for some time.
    ReadOn(Client),
}

impl Leaving {
    /// What it means for the answer to a call.
    pub fn of_call(client: &Client) -> Self {
        match client.era() {
            Era::Modern => Self::Cancels(client.clone()),
            Era::Legacy => Self::ReadOn(client.clone()),
        }
    }

    /// What this comes to, unless the client leaves in a way that ends it.
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

/// How long an answer without a reader is read on: until the client comes back another way, or not for too long.
async fn orphaned(client: &Client) -> Over {
    let since = client.gone().await;
    tokio::select! {
        () = client.resumed() => Over::Resumed,
        () = tokio::time::sleep_until(since + ORPHAN_TIME) => Over::Broken(UpstreamError::TimedOut),
    }
}

/// The events of an answer, as they go on.
pub struct Tapped {
    body: Option<AnswerBody>,
    splitter: Splitter,
    tap: Box<dyn Tap>,
    leaving: Leaving,
    ready: VecDeque<Bytes>,
    over: bool,
}

impl Tapped {
    /// The events of this body, shown to the tap.
    pub fn new(body: AnswerBody, tap: Box<dyn Tap>, leaving: Leaving) -> Self {
        let splitter = Splitter::default();
        Self { body: Some(body), splitter, tap, leaving, ready: VecDeque::new(), over: false }
    }

    /// What goes on next.
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

    /// Reads some more; says so if that was all.
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
