//! A stream of events that the gateway opened itself, before there was an answer of the upstream.

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::mpsc;

use super::answer::{self, Form};
use super::tapped::{Leaving, Tapped};
use super::{Over, Passing, Tap, events};
use crate::front::{Client, Response};
use crate::limits::MESSAGES_AHEAD;
use crate::upstream::Answer;

/// A stream towards a client. Dropping it ends the answer.
pub struct Opened {
    client: Client,
    sender: mpsc::Sender<Bytes>,
}

/// Starts to answer with a stream. The work that feeds it belongs into [`Client::spawn`]: the response has to be returned
/// for the client to see any of it.
pub fn open(client: &Client) -> (Opened, Response) {
    let (sender, receiver) = mpsc::channel(MESSAGES_AHEAD);
    let response = answer::events(StatusCode::OK, http::HeaderMap::new(), answer::received(receiver));
    (Opened { client: client.clone(), sender }, response)
}

impl Opened {
    /// Sends a message. False if the client is gone.
    pub async fn send(&self, message: &[u8]) -> bool {
        self.sender.send(events::message(message)).await.is_ok()
    }

    /// Sends a comment: it keeps the connection alive while a human thinks. False if the client is gone.
    pub async fn keep_alive(&self) -> bool {
        self.sender.send(Bytes::from_static(b": still here\n\n")).await.is_ok()
    }

    /// Returns when the client went away.
    pub async fn gone(&self) {
        self.sender.closed().await;
    }

    /// Goes on with the upstream's answer, whatever its form: JSON becomes one event. An answer without any message is for
    /// the tap's [`Tap::over`] to put into words: its status cannot be passed on any more.
    pub async fn carry(self, answer: Answer, mut tap: Box<dyn Tap>) {
        let leaving = Leaving::of_call(&self.client);
        if answer::form(&answer) == Form::Events {
            let mut tapped = Tapped::new(answer.body, tap, leaving);
            while let Some(bytes) = tapped.next().await {
                let _gone = self.sender.send(bytes).await;
            }
            return;
        }
        let how = match answer::whole(answer, leaving).await {
            Ok(text) => {
                self.show(text, tap.as_mut()).await;
                Over::Complete
            }
            Err(over) => over,
        };
        if let Some(last) = tap.over(how).await {
            self.send(&last).await;
        }
    }

    async fn show(&self, text: Bytes, tap: &mut dyn Tap) {
        if !answer::is_message(&text) {
            return;
        }
        match tap.message(text.clone()).await {
            Passing::Untouched => self.send(&text).await,
            Passing::Replaced(other) => self.send(&other).await,
            Passing::Withheld => true,
        };
    }
}
