//! The probes: the requests of the suite, by name and in order.

/// One request of the suite. The order is that in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// The key set.
    Keys,
    /// A key that does not exist.
    UnknownKey,
    /// Registration of the statement.
    Registration,
    /// The first response of the receipt resource while the registration was still running.
    Running,
    /// The receipt resource, after the registration ended.
    Receipt,
    /// The key that signed the receipt, else the first key of the set with a `kid`, by the base64url form of the `kid`.
    KeyByKid,
    /// The same key by its raw `kid`, if that is safe in a path.
    KeyByRawKid,
    /// The receipt resource, in any type.
    ReceiptOfAnyType,
    /// The same statement again.
    Resubmission,
    /// The same statement with its receipt in the unprotected header: the Transparent Statement.
    Transparent,
    /// The same statement with a content type that has a parameter.
    TypeWithParameter,
    /// The same statement without a content type.
    NoType,
    /// The same statement as JSON.
    WrongType,
    /// The same statement, in pieces with pauses.
    SlowBody,
    /// An entry that does not exist.
    UnknownEntry,
    /// A locator with a character that no locator has.
    InvalidLocator,
    /// A path that is not a resource.
    UnknownPath,
    /// A method that the registration resource does not have.
    WrongMethod,
    /// A statement that must not be registered.
    Hostile(HostileInput),
    /// The key set once more, after all hostile input.
    KeysAgain,
}

/// Bodies that are not an acceptable statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostileInput {
    /// No body.
    Empty,
    /// Text.
    Text,
    /// A statement without its last byte.
    Truncated,
    /// A statement with one byte more.
    TrailingByte,
    /// A statement without tag 18.
    Untagged,
    /// A statement with the tag of COSE_Mac0.
    WrongTag,
    /// A byte string that announces 2^63 bytes.
    AnnouncedLength,
    /// A statement whose outer array has an indefinite length.
    IndefiniteLength,
    /// A statement whose unprotected header has the same label twice.
    DuplicateLabel,
    /// A statement with `crit` in its unprotected header.
    UnprotectedCritical,
    /// A statement whose unprotected header has the labels of the protected one.
    BothHeaders,
    /// A statement with deeply nested arrays in its unprotected header.
    DeepNesting,
    /// A statement with its claims in the unprotected header, signed by the issuer.
    UnprotectedClaims,
    /// A statement without a `kid`, signed by the issuer.
    NoKid,
    /// A statement with an unknown label in its protected `crit`, signed by the issuer.
    UnknownCritical,
    /// A statement whose protected header has the same label twice, signed by the issuer.
    ProtectedDuplicate,
    /// A hash envelope with a content type (3), signed by the issuer.
    TypedHashEnvelope,
    /// A statement with a changed signature.
    WrongSignature,
    /// A statement with an unassigned algorithm.
    UnknownAlgorithm,
    /// A statement whose payload is neither attached nor sent.
    NoPayload,
    /// A body of [`TOO_LARGE_BYTES`](crate::limits::TOO_LARGE_BYTES).
    TooLarge,
}

/// All probes, in the order in which they are sent. [`Probe::Running`] is recorded while [`Probe::Receipt`] is polled.
pub const PROBES: &[Probe] = &[
    Probe::Keys,
    Probe::UnknownKey,
    Probe::Registration,
    Probe::Receipt,
    Probe::KeyByKid,
    Probe::KeyByRawKid,
    Probe::ReceiptOfAnyType,
    Probe::Resubmission,
    Probe::Transparent,
    Probe::TypeWithParameter,
    Probe::NoType,
    Probe::WrongType,
    Probe::SlowBody,
    Probe::UnknownEntry,
    Probe::InvalidLocator,
    Probe::UnknownPath,
    Probe::WrongMethod,
    Probe::Hostile(HostileInput::Empty),
    Probe::Hostile(HostileInput::Text),
    Probe::Hostile(HostileInput::Truncated),
    Probe::Hostile(HostileInput::TrailingByte),
    Probe::Hostile(HostileInput::Untagged),
    Probe::Hostile(HostileInput::WrongTag),
    Probe::Hostile(HostileInput::AnnouncedLength),
    Probe::Hostile(HostileInput::IndefiniteLength),
    Probe::Hostile(HostileInput::DuplicateLabel),
    Probe::Hostile(HostileInput::UnprotectedCritical),
    Probe::Hostile(HostileInput::BothHeaders),
    Probe::Hostile(HostileInput::DeepNesting),
    Probe::Hostile(HostileInput::UnprotectedClaims),
    Probe::Hostile(HostileInput::NoKid),
    Probe::Hostile(HostileInput::UnknownCritical),
    Probe::Hostile(HostileInput::ProtectedDuplicate),
    Probe::Hostile(HostileInput::TypedHashEnvelope),
    Probe::Hostile(HostileInput::WrongSignature),
    Probe::Hostile(HostileInput::UnknownAlgorithm),
    Probe::Hostile(HostileInput::NoPayload),
    Probe::Hostile(HostileInput::TooLarge),
    Probe::KeysAgain,
];
