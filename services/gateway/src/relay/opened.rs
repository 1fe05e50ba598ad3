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
        if answer::form(&answer) == Form::Events {
            let mut tapped = Tapped::new(answer.body, tap, Leaving::of_call(&self.client));
            while let Some(bytes) = tapped.next().await {
                let _gone = self.sender.send(bytes).await;
            }
            return;
        }
        let last = match answer::whole(answer, Leaving::of_call(&self.client)).await {
            Ok(text) if answer::is_message(&text) => match tap.message(text.clone()).await {
                Passing::Untouched => self.send_and_close(&text, tap).await,
                Passing::Replaced(other) => self.send_and_close(&other, tap).await,
                Passing::Withheld => return self.close(tap, Over::Complete).await,
            },
            Ok(_) => return self.close(tap, Over::Complete).await,
            Err(over) => return self.close(tap, over).await,
        };
        drop(last);
    }

    async fn send_and_close(&self, text: &[u8], mut tap: Box<dyn Tap>) {
        self.send(text).await;
        if let Some(last) = tap.over(Over::Complete).await {
            self.send(&last).await;
        }
    }

    async fn close(self, mut tap: Box<dyn Tap>, how: Over) {
        if let Some(last) = tap.over(how).await {
            self.send(&last).await;
        }
    }
}
