//! An event stream that passes through a tap.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use futures::StreamExt;

use super::{CallLimit, Client, Over, Passing, Tap};
use crate::limits::ORPHAN_TIME;
use crate::memory::ANSWERS;
use crate::upstream::events::{self, Event, Splitter};
use crate::upstream::{AnswerBody, UpstreamError};
use admission::principal::Era;

/// What ends the reading of an answer before its own end.
pub enum Leaving {
    /// A disconnect drops the reader of the answer, and the answer with it.
    Dropped,
    /// The answer is that to a call: it is read until the limit. A disconnect cancels it in the modern era; in the legacy
    /// era it is read on, at most for [`ORPHAN_TIME`].
    Call(Client, CallLimit),
}

impl Leaving {
    /// Runs `work`, unless the reading ends first.
    ///
    /// # Errors
    /// [`Over`] if it did.
    pub async fn unless_left<T>(&self, work: impl Future<Output = T>) -> Result<T, Over> {
        let Self::Call(client, limit) = self else { return Ok(work.await) };
        // Checked first: a server that never pauses does not go on beyond the limit.
        if let Some(why) = limit.reached() {
            return Err(Over::GivenUp(why));
        }
        tokio::select! {
            biased;
            done = work => Ok(done),
            over = orphaned(client) => Err(over),
            why = limit.over() => Err(Over::GivenUp(why)),
        }
    }
}

/// Waits until an answer without a reader need not be read any further: at once in the modern era; in the legacy era when
/// the client resumed its stream, or [`ORPHAN_TIME`] has passed since the disconnect.
async fn orphaned(client: &Client) -> Over {
    let since = client.gone().await;
    if client.era() == Era::Modern {
        return Over::Abandoned;
    }
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
            Ok(None) => return Some(Over::Complete { may_follow: true }),
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
