//! CBOR (RFC 8949), read strictly and written deterministically.
//!
//! [`parse`] takes any well-formed encoding, long heads and indefinite lengths included, because a
//! signed header must be taken as it was signed. It refuses what makes two readers disagree: equal
//! keys in one map at any level (compared by value, so `01` and `1801` are one key), bad UTF-8, bytes
//! after the item, reserved heads. A map may be a key, or stand in one, if its own keys are no arrays,
//! maps or tags: keys in keys nest too deeply. Everything carries its byte span, so that callers can keep the
//! original bytes and name the place of a mistake. Cost is bounded by [`Limits`] and by the length of
//! the input, never by a length the input announces.
//!
//! [`Value::encode`] and [`Writer`] emit the core deterministic encoding (section 4.2.1).
//!
//! Not here: what any label means, and diagnostic notation.

mod float;
mod reader;
mod value;
mod writer;

pub use reader::{Head, Limits, Major, Reader, parse};
pub use value::{Item, Value};
pub use writer::Writer;

/// Input that is not the CBOR we accept, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct Error {
    /// Byte offset of the item at fault, from the start of the input.
    pub offset: usize,
    /// What is wrong with it.
    pub kind: ErrorKind,
}

/// The ways in which CBOR is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// The input ends inside an item.
    #[error("the input ends inside an item")]
    UnexpectedEnd,
    /// A string or container announces more than the input holds.
    #[error("announced length exceeds the input")]
    LengthBeyondInput,
    /// Additional information 28 to 30, or an indefinite length where none is allowed.
    #[error("reserved initial byte")]
    ReservedHead,
    /// A two-byte simple value below 32.
    #[error("reserved simple value")]
    ReservedSimple,
    /// A break outside an indefinite-length item, or in place of a map value.
    #[error("unexpected break")]
    UnexpectedBreak,
    /// A chunk of an indefinite-length string that is not a definite string of its type.
    #[error("bad chunk in an indefinite-length string")]
    BadChunk,
    /// A text string that is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// A key that the same map already has.
    #[error("duplicate map key")]
    DuplicateKey,
    /// Nesting beyond the limit.
    #[error("nested too deeply")]
    TooDeep,
    /// More data items than the limit.
    #[error("too many data items")]
    TooManyItems,
    /// Bytes after the item.
    #[error("bytes after the end of the item")]
    TrailingBytes,
}
