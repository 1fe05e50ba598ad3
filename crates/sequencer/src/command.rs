//! Commands to the sequencer's task, and the channels of their answers.

use std::sync::Arc;

use merkle::EntryDigest;
use tokio::sync::{mpsc, oneshot};

use crate::budget::SubmissionSlot;
use crate::{Placement, Submission, SubmitError};

/// Command for the sequencer's task.
pub(crate) enum SequencerCommand {
    /// QueueSlot this submission.
    Submit(SubmitRequest),
    /// Report when this item of the inbox is placed.
    Follow(Follow),
}

/// Submission with its reply channel.
pub(crate) struct SubmitRequest {
    pub(crate) submission: Arc<Submission>,
    pub(crate) reply: SubmissionReply,
    pub(crate) place: SubmissionSlot,
}

/// Caller that waits for an inbox item.
pub(crate) struct Follow {
    pub(crate) digest: EntryDigest,
    pub(crate) reply: oneshot::Sender<CommandAnswer>,
}

impl SubmitRequest {
    /// Returns whether the caller no longer waits for the answer.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(&self.reply, SubmissionReply::Caller(reply) if reply.is_closed())
    }
}

/// Reply channel of a submission.
pub(crate) enum SubmissionReply {
    /// A caller of [`Handle::submit`](crate::Handle::submit).
    Caller(oneshot::Sender<CommandAnswer>),
    /// The task that drains the inbox (`inbox::Drain`).
    Inbox(EntryDigest, mpsc::UnboundedSender<(EntryDigest, CommandAnswer)>),
}

impl SubmissionReply {
    /// Sends the answer; a caller that has left needs none.
    pub(crate) fn send(self, answer: CommandAnswer) {
        match self {
            Self::Caller(reply) => drop(reply.send(answer)),
            Self::Inbox(digest, replies) => drop(replies.send((digest, answer))),
        }
    }
}

/// Answer to a [`SequencerCommand`].
#[derive(Clone, Debug)]
pub(crate) enum CommandAnswer {
    /// Outcome of the submission.
    Done(Result<Placement, SubmitError>),
    /// This process no longer sequences: the caller uses the inbox instead.
    HandBack,
}
