//! A strict reader and a deterministic writer for CBOR (RFC 8949).
//!
//! [`parse`] accepts any well-formed encoding, including long heads and indefinite lengths, because a signed header
//! must be read as it was signed. It refuses input that two readers may understand differently: equal keys in one map
//! at any level (compared by value, so that `01` and `1801` are one key), bad UTF-8, bytes after the item, reserved
//! heads. A map may be a key or part of a key, if its own keys contain no arrays, maps or tags: otherwise keys nest too
//! deeply. Every item has its byte span, so that callers can keep the original bytes and report the position of a
//! mistake. The cost is bounded by [`Limits`] and by the length of the input, never by a length that the input
//! announces.
//!
//! [`Value::encode`] and [`ItemWriter`] emit the core deterministic encoding (section 4.2.1).
//!
//! Not here: the meaning of labels, and diagnostic notation.

mod reader;
mod value;
mod writer;

pub use reader::{ItemHead, ItemReader, Limits, Major, parse};
pub use value::{Item, Value};
pub use writer::ItemWriter;

/// Error for refused CBOR input, with its byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct Error {
    /// Byte offset of the refused item, from the start of the input.
    pub offset: usize,
    /// Kind of error.
    pub kind: ErrorKind,
}

/// Reasons why [`parse`] and [`ItemReader`] refuse CBOR.
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
    /// A two-byte simple value below 32 (section 3.3).
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
    /// Nesting beyond [`Limits::depth`].
    #[error("nested too deeply")]
    TooDeep,
    /// More data items than [`Limits::items`].
    #[error("too many data items")]
    TooManyItems,
    /// Bytes after the item.
    #[error("bytes after the end of the item")]
    TrailingBytes,
}
