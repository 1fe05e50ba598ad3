//! Webhooks for alarms: signed messages of Standard Webhooks 1.0, delivered at least once.
//!
//! A message is durable before its alarm counts as raised, and is retried for
//! [`WEBHOOK_LIFE`](crate::limits::WEBHOOK_LIFE) with growing, jittered pauses. Receivers come from the operator's
//! configuration only: text from a log never becomes a URL, redirects are not followed, and non-public addresses are
//! refused at connection time unless the receiver's setting allows them.
//!
//! Not here: the definition of alarms ([`crate::alarm`]). Of a receiver's response only the status and `Retry-After`
//! are used.

mod address;
mod open;
mod queue;
mod send;
mod signing;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use serde::Serialize;
use tokio::sync::Notify;

pub use open::OpenError;
pub use queue::{NotQueued, Queue, QueuedMessage};
pub use send::{SetupError, WebhookReceiver};
pub use signing::{NotAKey, SharedSecret, WebhookKey, WebhookMessage, WebhookPublicKey};

use crate::limits::{WEBHOOK_IDLE, WEBHOOK_RETRY_LONGEST, WEBHOOK_WAITS};
use send::{DeliveryAttempt, Sender};

/// The receivers, the queue of messages, and the signing key.
pub struct Webhooks {
    queue: Queue,
    key: WebhookKey,
    senders: Vec<Sender>,
    kept: Notify,
    /// Receivers that are down, with the time (Unix seconds) before which no message is sent to them.
    held: Mutex<BTreeMap<String, u64>>,
}

/// Result of one pass over the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Messages accepted by their receivers.
    pub delivered: u64,
    /// Failed attempts that will be retried.
    pub failed: u64,
    /// Messages dropped after [`WEBHOOK_LIFE`](crate::limits::WEBHOOK_LIFE), or without a configured receiver.
    pub given_up: u64,
}

/// The body of a message (Standard Webhooks 1.0, payload structure).
#[derive(Serialize)]
struct Body<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    timestamp: String,
    data: &'a T,
}

impl Webhooks {
    /// Opens the queue in the directory `state`, for messages to `targets`.
    ///
    /// # Errors
    /// [`SetupError`] if a target has no HTTP URL or a non-public address.
    pub fn new(state: &Path, key: WebhookKey, targets: Vec<WebhookReceiver>) -> Result<Self, SetupError> {
        let senders = targets.into_iter().map(Sender::new).collect::<Result<_, _>>()?;
        Ok(Self {
            queue: Queue::in_directory(state),
            key,
            senders,
            kept: Notify::new(),
            held: Mutex::default(),
        })
    }

    /// Returns `true` if no receiver is configured.
    pub fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    /// The public key with which receivers verify messages.
    pub fn public_key(&self) -> WebhookPublicKey {
        self.key.public()
    }

    /// Queues a message for every receiver. A second message with the same `id` and `at` replaces the first.
    ///
    /// # Errors
    /// [`NotQueued`] if it cannot be queued for a receiver; the other receivers are not affected.
    pub fn enqueue(&self, id: &str, kind: &str, at: u64, data: &impl Serialize) -> Result<(), NotQueued> {
        let timestamp = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        let timestamp = timestamp.unwrap_or_default().to_string();
        let body = serde_json::to_string(&Body { kind, timestamp, data }).map_err(std::io::Error::from)?;
        let keep = |sender: &Sender| {
            let (id, target, body) = (id.to_owned(), sender.url().to_owned(), body.clone());
            self.queue.keep(&QueuedMessage {
                id,
                target,
                made_at: at,
                attempts: 0,
                next_at: 0,
                problem: None,
                body,
            })
        };
        let kept: Vec<_> = self.senders.iter().map(keep).collect();
        self.kept.notify_one();
        kept.into_iter().collect()
    }

    /// The number of queued messages.
    pub fn waiting(&self) -> usize {
        self.queue.count().unwrap_or(0)
    }

    /// Delivers messages until the future is dropped; calls `on_pass` with the result of each pass.
    pub async fn run(&self, now: impl Fn() -> u64, on_pass: impl Fn(Pass)) {
        loop {
            let pass = self.pass(now()).await;
            if pass != Pass::default() {
                on_pass(pass);
            }
            let wait =
                self.next_at().map_or(WEBHOOK_IDLE, |at| Duration::from_secs(at.saturating_sub(now())));
            let wait = wait.clamp(Duration::from_millis(200), WEBHOOK_IDLE);
            let _ = tokio::time::timeout(wait, self.kept.notified()).await;
        }
    }

    /// Attempts all due messages, concurrently for different receivers.
    pub async fn pass(&self, now: u64) -> Pass {
        let waiting = self.queue.all().unwrap_or_else(|error| {
            tracing::error!(%error, "the webhook queue cannot be read");
            Vec::new()
        });
        let mut by_target: BTreeMap<&str, Vec<&QueuedMessage>> = BTreeMap::new();
        for message in waiting.iter().filter(|message| self.due_at(message) <= now) {
            by_target.entry(message.target.as_str()).or_default().push(message);
        }
        let passes = by_target.into_iter().map(|(target, due)| self.pass_to(target, due, now));
        join_all(passes).await.into_iter().fold(Pass::default(), Pass::and)
    }

    /// Sends the due messages of one receiver in order; stops if the receiver is down.
    async fn pass_to(&self, target: &str, due: Vec<&QueuedMessage>, now: u64) -> Pass {
        let mut pass = Pass::default();
        let Some(sender) = self.senders.iter().find(|sender| sender.url() == target) else {
            // The receiver was removed from the configuration: its messages cannot be delivered.
            return due
                .into_iter()
                .fold(pass, |pass, message| pass.and(self.give_up(message, "no such webhook")));
        };
        for message in due {
            match sender.attempt(&self.key, message, now).await {
                DeliveryAttempt::Delivered => pass = pass.and(self.delivered(message)),
                DeliveryAttempt::Refused { why } => pass = pass.and(self.again(message, &why, None, now).0),
                DeliveryAttempt::Down { why, after } => {
                    let (tried, until) = self.again(message, &why, after, now);
                    self.hold(target, until);
                    return pass.and(tried);
                }
            }
        }
        pass
    }

    fn delivered(&self, message: &QueuedMessage) -> Pass {
        if let Err(error) = self.queue.forget(message) {
            tracing::warn!(%error, id = message.id, "a delivered webhook stays in the queue and will be sent again");
        }
        Pass { delivered: 1, ..Pass::default() }
    }

    /// Schedules the next attempt, or gives up; returns the result and the time of the next attempt.
    fn again(&self, message: &QueuedMessage, why: &str, after: Option<Duration>, now: u64) -> (Pass, u64) {
        let wait = wait_after(message.attempts).max(after.unwrap_or_default().min(WEBHOOK_RETRY_LONGEST));
        let next_at = now.saturating_add(wait.as_secs().max(1));
        if message.is_spent(now) {
            return (self.give_up(message, why), next_at);
        }
        let later = QueuedMessage {
            attempts: message.attempts.saturating_add(1),
            next_at,
            problem: Some(why.to_owned()),
            ..message.clone()
        };
        tracing::warn!(
            id = message.id,
            target = message.target,
            attempts = later.attempts,
            why,
            "webhook not delivered"
        );
        if let Err(error) = self.queue.keep(&later) {
            tracing::warn!(%error, id = message.id, "the attempt was not recorded");
        }
        (Pass { failed: 1, ..Pass::default() }, next_at)
    }

    fn give_up(&self, message: &QueuedMessage, why: &str) -> Pass {
        tracing::error!(id = message.id, target = message.target, why, "webhook given up");
        if let Err(error) = self.queue.forget(message) {
            tracing::warn!(%error, id = message.id, "a webhook that was given up stays in the queue");
        }
        Pass { given_up: 1, ..Pass::default() }
    }

    fn next_at(&self) -> Option<u64> {
        self.queue.all().ok()?.iter().map(|message| self.due_at(message)).min()
    }

    fn hold(&self, target: &str, until: u64) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(target.to_owned(), until);
    }

    /// Time of the next attempt, not before the end of its receiver's hold.
    fn due_at(&self, message: &QueuedMessage) -> u64 {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(&message.target).map_or(message.next_at, |until| message.next_at.max(*until))
    }
}

impl Pass {
    fn and(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            failed: self.failed + other.failed,
            given_up: self.given_up + other.given_up,
        }
    }
}

/// Wait after the given number of failed attempts: 75 % to 125 % of the value in [`WEBHOOK_WAITS`], so that messages
/// that failed together are not retried together.
fn wait_after(attempts: u32) -> Duration {
    let at = usize::try_from(attempts).unwrap_or(usize::MAX).min(WEBHOOK_WAITS.len() - 1);
    let random = f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX);
    Duration::from_secs(WEBHOOK_WAITS[at]).mul_f64(0.75 + random / 2.0)
}

#[cfg(test)]
mod tests;
