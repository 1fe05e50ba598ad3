//! Labels of header entries and CWT claims, and the numbers of the known ones.

use std::fmt;

use crate::cbor::Value;

/// Numbers of the known header labels and CWT claims.
pub mod labels {
    /// Signature algorithm (RFC 9052).
    pub const ALG: i64 = 1;
    /// Labels that must be understood (RFC 9052).
    pub const CRIT: i64 = 2;
    /// Content type of the payload (RFC 9052).
    pub const CONTENT_TYPE: i64 = 3;
    /// Key identifier (RFC 9052).
    pub const KID: i64 = 4;
    /// CWT claims (RFC 9597).
    pub const CWT_CLAIMS: i64 = 15;
    /// Type of the whole message (RFC 9596).
    pub const TYP: i64 = 16;
    /// Certificate chain (RFC 9360).
    pub const X5CHAIN: i64 = 33;
    /// Certificate hash (RFC 9360).
    pub const X5T: i64 = 34;
    /// Hash algorithm of a hash envelope (RFC 9995).
    pub const PAYLOAD_HASH_ALG: i64 = 258;
    /// Content type of the hashed content (RFC 9995).
    pub const PREIMAGE_CONTENT_TYPE: i64 = 259;
    /// Location of the hashed content (RFC 9995).
    pub const PAYLOAD_LOCATION: i64 = 260;
    /// Receipts of a Transparent Statement (RFC 9942).
    pub const RECEIPTS: i64 = 394;
    /// Verifiable data structure of a receipt (RFC 9942).
    pub const VDS: i64 = 395;
    /// Proofs of a receipt (RFC 9942).
    pub const VDP: i64 = 396;
    /// Tree size in receipts of this implementation, so that the size is signed.
    pub const TREE_SIZE: &str = "tree-size";
    /// Map of a CCF ledger in its receipts.
    pub const CCF: &str = "ccf.v1";
    /// Transaction that signed the root, in the map under [`CCF`].
    pub const CCF_TXID: &str = "txid";

    /// CWT issuer.
    pub const ISS: i64 = 1;
    /// CWT subject.
    pub const SUB: i64 = 2;
    /// CWT expiry.
    pub const EXP: i64 = 4;
    /// CWT not-before.
    pub const NBF: i64 = 5;
    /// CWT issued-at.
    pub const IAT: i64 = 6;
}

/// A header label or claim key. Integers beyond 64 bits are refused: no registered label is that large.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A registered or private number.
    Int(i64),
    /// A text label.
    Text(String),
}

impl Label {
    /// Returns the label as CBOR.
    pub fn to_value(&self) -> Value<'static> {
        match self {
            Self::Int(number) => (*number).into(),
            Self::Text(text) => text.clone().into(),
        }
    }
}

/// Maximum number of bytes of a text label that an error message repeats.
const SHOWN: usize = 32;

impl From<i64> for Label {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Formats integers bare, and text in quotes, shortened and with control characters escaped, since it goes into error
/// responses.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{:?}", &text[..text.floor_char_boundary(SHOWN)]),
        }
    }
}

impl From<Label> for coset::Label {
    fn from(label: Label) -> Self {
        match label {
            Label::Int(number) => Self::Int(number),
            Label::Text(text) => Self::Text(text),
        }
    }
}
