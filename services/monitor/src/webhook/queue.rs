//! The queue of undelivered messages: one file for each message and receiver, so that a crash loses none.
//!
//! A message is durable before its sender continues, and is removed after its receiver has acknowledged it. After a
//! crash between the two it is sent again: at-least-once delivery. File names sort by the time of the message.

use std::io;
use std::path::{Path, PathBuf};

use durable::FileAccess;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits::{WEBHOOK_BYTES, WEBHOOK_LIFE, WEBHOOK_QUEUE};

/// A queued message for one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// The message ID (`webhook-id`), the same for all receivers and attempts.
    pub id: String,
    /// The receiver's URL.
    pub target: String,
    /// Time at which the message was queued, in Unix seconds.
    pub made_at: u64,
    /// Number of failed attempts.
    pub attempts: u32,
    /// Time of the next attempt, in Unix seconds.
    pub next_at: u64,
    /// Description of the last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The body, as sent and signed.
    pub body: String,
}

impl QueuedMessage {
    /// Returns `true` after [`WEBHOOK_LIFE`]: the next failed attempt is the last.
    pub fn is_spent(&self, now: u64) -> bool {
        now >= self.made_at.saturating_add(WEBHOOK_LIFE.as_secs())
    }

    fn file_name(&self) -> String {
        format!("{:012}-{}-{}.json", self.made_at, Self::short(&self.id), Self::short(&self.target))
    }

    fn short(text: &str) -> String {
        data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes())[..8])
    }
}

/// The folder of queued messages.
#[derive(Clone, Debug)]
pub struct Queue {
    folder: PathBuf,
}

/// Errors of queueing a message.
#[derive(Debug, thiserror::Error)]
pub enum NotQueued {
    /// [`WEBHOOK_QUEUE`] messages are queued for this receiver already.
    #[error("{WEBHOOK_QUEUE} webhooks wait for this receiver already")]
    Full,
    /// The body is longer than [`WEBHOOK_BYTES`].
    #[error("a webhook of more than {WEBHOOK_BYTES} bytes")]
    TooLong,
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Queue {
    /// The queue in a state directory.
    pub fn in_directory(state: &Path) -> Self {
        Self { folder: state.join("webhooks") }
    }

    /// Queues a message. Once `Ok`, it survives power loss.
    pub fn keep(&self, message: &QueuedMessage) -> Result<(), NotQueued> {
        if message.body.len() > WEBHOOK_BYTES {
            return Err(NotQueued::TooLong);
        }
        durable::make_folder(&self.folder, FileAccess::Secret)?;
        let path = self.folder.join(message.file_name());
        let own = format!("-{}.json", QueuedMessage::short(&message.target));
        if !path.exists() && durable::names(&self.folder, &own)?.len() >= WEBHOOK_QUEUE {
            return Err(NotQueued::Full);
        }
        let bytes = serde_json::to_vec(message).map_err(io::Error::from)?;
        Ok(durable::replace(&path, &bytes, FileAccess::Secret).map_err(io::Error::from)?)
    }

    /// All queued messages, oldest first. Files that are not messages are skipped.
    pub fn all(&self) -> io::Result<Vec<QueuedMessage>> {
        let read = |name: String| {
            let bytes = durable::read(&self.folder.join(&name), 2 * WEBHOOK_BYTES as u64 + 4096);
            let message = bytes.ok().flatten().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if message.is_none() {
                tracing::warn!(file = name, "not a webhook message: left alone");
            }
            message
        };
        Ok(self.names()?.into_iter().filter_map(read).collect())
    }

    /// The number of queued messages.
    pub fn count(&self) -> io::Result<usize> {
        Ok(self.names()?.len())
    }

    /// Removes a message that was delivered or given up.
    pub fn forget(&self, message: &QueuedMessage) -> io::Result<()> {
        durable::remove(&self.folder.join(message.file_name()))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        durable::names(&self.folder, ".json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(made_at: u64, id: &str, target: &str) -> QueuedMessage {
        let (id, target, body) = (id.to_owned(), target.to_owned(), "{}".to_owned());
        QueuedMessage { id, target, made_at, attempts: 0, next_at: 0, problem: None, body }
    }

    #[test]
    fn what_was_kept_is_there_after_a_restart_oldest_first() {
        let state = tempfile::tempdir().unwrap();
        let queue = Queue::in_directory(state.path());
        assert!(queue.all().unwrap().is_empty());
        let (old, new, other) = (message(9, "a", "x"), message(10, "b", "x"), message(10, "b", "y"));
        for kept in [&new, &other, &old, &old] {
            queue.keep(kept).unwrap();
        }
        let queue = Queue::in_directory(state.path());
        assert_eq!(queue.count().unwrap(), 3);
        assert_eq!(queue.all().unwrap()[0], old);
        queue.forget(&old).unwrap();
        queue.forget(&old).unwrap();
        assert_eq!(queue.count().unwrap(), 2);
    }

    #[test]
    fn a_file_that_is_no_message_stands_in_nobodys_way() {
        let state = tempfile::tempdir().unwrap();
        let queue = Queue::in_directory(state.path());
        queue.keep(&message(1, "a", "x")).unwrap();
        std::fs::write(state.path().join("webhooks/000000000000-x.json"), "half a mess").unwrap();
        assert_eq!(queue.all().unwrap().len(), 1);
    }

    #[test]
    fn a_message_without_end_is_not_taken() {
        let state = tempfile::tempdir().unwrap();
        let body = "x".repeat(WEBHOOK_BYTES + 1);
        let refused = Queue::in_directory(state.path()).keep(&QueuedMessage { body, ..message(1, "a", "x") });
        assert!(matches!(refused, Err(NotQueued::TooLong)));
    }

    #[test]
    fn a_receiver_for_whom_too_many_wait_keeps_nothing_from_another() {
        let state = tempfile::tempdir().unwrap();
        let queue = Queue::in_directory(state.path());
        queue.keep(&message(1, "a", "x")).unwrap();
        for n in 0..WEBHOOK_QUEUE as u64 {
            std::fs::write(queue.folder.join(message(2 + n, "a", "x").file_name()), "").unwrap();
        }
        assert!(matches!(queue.keep(&message(1, "b", "x")), Err(NotQueued::Full)));
        queue.keep(&message(1, "b", "y")).unwrap();
    }
}
