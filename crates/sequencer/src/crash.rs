//! The sequencer's crash points: see [`durable::crash`].

/// A moment at which a crash must lose nothing that was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The batch is ready; nothing of it is in the database.
    BeforeCommit,
    /// The database acknowledged the batch.
    AfterCommit,
    /// The batch is committed, the pin is not raised.
    BeforePin,
    /// The pin was read and may be raised; nothing is written yet.
    InPin,
    /// The pin is raised, nothing is signed.
    BeforeSign,
    /// The head is signed; nobody has seen it.
    AfterSign,
    /// The head is published; nobody was answered.
    BeforeAnswer,
    /// Everybody was answered; the signature is not in the database.
    BeforeKeep,
    /// The lease is held, the epoch not yet raised.
    BeforeTakeOver,
    /// The epoch is raised, nothing is checked.
    AfterTakeOver,
    /// The submission is about to become durable in the inbox.
    BeforeEnqueue,
    /// A key is announced, the key table does not say that it signs.
    BeforeKeyChange,
    /// The key table says that the new key signs; no head is signed with it.
    AfterKeyChange,
}

impl Point {
    /// Aborts or stops the process if a test ordered it for this visit.
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
