//! Crash points of the sequencer: see [`durable::crash`].

/// Moment at which a crash must lose nothing that was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The batch is complete; no part of it is in the database.
    BeforeCommit,
    /// The database acknowledged the batch ([`LogWriter::commit`](store::LogWriter::commit) returned `Ok`).
    AfterCommit,
    /// The batch is committed, the pin is not raised.
    BeforePin,
    /// The pin was read and may be raised; nothing has been written.
    InPin,
    /// The pin is raised, the head is not signed.
    BeforeSign,
    /// The head is signed and not shown to any caller.
    AfterSign,
    /// The head is published; no submitter has an answer.
    BeforeAnswer,
    /// All submitters have their answers; the signature is not in the database.
    BeforeKeep,
    /// The lease is held, the epoch is not raised.
    BeforeTakeOver,
    /// The epoch is raised, nothing is checked in it.
    AfterTakeOver,
    /// The submission is about to be written to the inbox.
    BeforeEnqueue,
    /// A key is announced, the key table does not list it yet.
    BeforeKeyChange,
    /// The key table lists the new key; no head is signed with it.
    AfterKeyChange,
}

impl Point {
    /// Aborts or stops the process if a test ordered that for this visit, by [`durable::crash::visit`].
    pub(crate) fn visit(self) {
        durable::crash::visit(self.name());
    }

    fn name(self) -> &'static str {
        match self {
            Self::BeforeCommit => "before-commit",
            Self::AfterCommit => "after-commit",
            Self::BeforePin => "before-pin",
            Self::InPin => "in-pin",
            Self::BeforeSign => "before-sign",
            Self::AfterSign => "after-sign",
            Self::BeforeAnswer => "before-answer",
            Self::BeforeKeep => "before-keep",
            Self::BeforeTakeOver => "before-take-over",
            Self::AfterTakeOver => "after-take-over",
            Self::BeforeEnqueue => "before-enqueue",
            Self::BeforeKeyChange => "before-key-change",
            Self::AfterKeyChange => "after-key-change",
        }
    }
}
