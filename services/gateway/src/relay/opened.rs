//! An event stream that the gateway opens before the upstream has answered.

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::mpsc;

use super::answer::{self, AnswerForm};
use super::awaited_answer::may_follow;
use super::tapped::{Leaving, Tapped};
use super::{CallLimit, Client, Over, Passing, Response, Tap};
use crate::limits::MESSAGES_AHEAD;
use crate::upstream::text::may_be_message;
use crate::upstream::{UpstreamAnswer, events};

/// An open event stream to a client. Dropping it ends the response.
pub struct OpenedStream {
    client: Client,
    sender: mpsc::Sender<Bytes>,
}

/// Opens an event stream as the response. The task that sends on it must run in [`Client::spawn`], because the response
/// has to be returned before the client receives anything.
pub fn open(client: &Client) -> (OpenedStream, Response) {
    let (sender, receiver) = mpsc::channel(MESSAGES_AHEAD);
    let response = answer::events(StatusCode::OK, http::HeaderMap::new(), answer::received(receiver));
    (OpenedStream { client: client.clone(), sender }, response)
}

impl OpenedStream {
    /// Sends a message. Returns false if the client has disconnected.
    pub async fn send(&self, message: &[u8]) -> bool {
        self.sender.send(events::message(message)).await.is_ok()
    }

    /// Sends a comment, which keeps the connection alive while a person decides. Returns false if the client has
    /// disconnected.
    pub async fn keep_alive(&self) -> bool {
        self.sender.send(Bytes::from_static(b": still here\n\n")).await.is_ok()
    }

    /// Waits until the client has disconnected.
    pub async fn gone(&self) {
        self.sender.closed().await;
    }

    /// Continues with the upstream's answer in any form: JSON becomes one event. For an answer without a message, the
    /// tap's [`Tap::over`] supplies the text, since the HTTP status can no longer be passed on.
    pub async fn carry(self, answer: UpstreamAnswer, mut tap: Box<dyn Tap>, limit: CallLimit) {
        let leaving = Leaving::Call(self.client.clone(), limit.clone());
        if answer::form(&answer) == AnswerForm::Events {
            let mut tapped = Tapped::new(answer.body, tap, leaving);
            while let Some(bytes) = tapped.next().await {
                let _gone = limit.within(self.sender.send(bytes)).await;
            }
            return;
        }
        let may_follow = may_follow(answer.status);
        let how = match answer::whole(answer, leaving).await {
            Ok(text) => {
                self.show(text, tap.as_mut()).await;
                Over::Complete { may_follow }
            }
            Err(over) => over,
        };
        if let Some(last) = tap.over(how).await {
            self.send(&last).await;
        }
    }

    async fn show(&self, text: Bytes, tap: &mut dyn Tap) {
        if !may_be_message(&text) {
            return;
        }
        match tap.message(text.clone()).await {
            Passing::Untouched => self.send(&text).await,
            Passing::Replaced(other) => self.send(&other).await,
            Passing::Withheld => true,
        };
    }
}
