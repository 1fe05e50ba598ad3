//! Parser for the protected header of a VRF statement (section 5; readings 3 to 10, 12 and 20).

use data_encoding::HEXLOWER;
use jose::members::quote;
use merkle::EntryDigest;
use scitt::cbor::Value;
use scitt::header::{Header, Label};
use scitt::{Algorithm, Curve, PublicKey};

use super::receipt::{Receipt, is_hash, is_uuid_v4};
use super::rule::VrfRule;
use super::{is_did_or_urn, kid_of, unlike};
use crate::facts::Facts;
use crate::limits::MAX_CHAIN_POSITION;
use crate::violation::Violation;

/// The private labels (section 5.2), with their paths in error messages.
const VERSION: (i64, &str) = (-70001, "-70001");
const ISSUER_DID: (i64, &str) = (-70002, "-70002");
const RECEIPT_ID: (i64, &str) = (-70003, "-70003");
const PREV_RECEIPT_HASH: (i64, &str) = (-70004, "-70004");
const CHAIN_POSITION: (i64, &str) = (-70005, "-70005");

/// The labels -70001 to -70005 in order.
pub(super) const LABELS: [i64; 5] =
    [VERSION.0, ISSUER_DID.0, RECEIPT_ID.0, PREV_RECEIPT_HASH.0, CHAIN_POSITION.0];

/// A VRF header that keeps every rule about the header alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VrfHeaders {
    /// The verifier that signed (`iss`).
    pub issuer: VrfIssuer,
    /// The agent whose work was verified (`sub`).
    pub sub: String,
    /// The version of the format (label -70001).
    pub version: String,
    /// The receipt's identifier (label -70003).
    pub receipt_id: String,
    /// The position in the chain (labels -70004 and -70005).
    pub chain: Chain,
}

/// The verifier of a receipt (section 5.4, which recommends a did:key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VrfIssuer {
    /// The did:key of the Ed25519 key that signs.
    DidKey(String),
    /// Another name, such as a URL or did:web. A policy or a trust store says which key signs for it.
    Other(String),
}

/// The position of a receipt among its issuer's receipts for one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Outside of any chain.
    Unchained,
    /// The first receipt of a chain, at position 0.
    Genesis,
    /// A later receipt.
    Link {
        /// The position, at least 1.
        position: u64,
        /// The entry ID of the preceding receipt.
        previous: EntryDigest,
    },
}

impl VrfHeaders {
    /// Parses a protected header.
    pub fn read(header: &Header) -> Result<VrfHeaders, Violation> {
        check_algorithm(header)?;
        let issuer = VrfIssuer::read(header)?;
        let sub = subject(header)?.to_owned();
        let version = label_text(header, VERSION)?;
        let labelled = label_text(header, ISSUER_DID)?;
        if labelled != issuer.as_str() {
            return Err(VrfRule::IssuerAgrees.in_header(ISSUER_DID.1, unlike(&labelled, issuer.as_str())));
        }
        let receipt_id = label_text(header, RECEIPT_ID)?;
        Ok(VrfHeaders { issuer, sub, version, receipt_id, chain: Chain::read(header)? })
    }

    /// Checks the version and `receipt_id` of a redacted statement, which has no payload to compare them with.
    pub(super) fn stand_alone(&self) -> Result<(), Violation> {
        if self.version != super::VERSION {
            return Err(VrfRule::Version.in_header(VERSION.1, unlike(&self.version, super::VERSION)));
        }
        match is_uuid_v4(&self.receipt_id) {
            true => Ok(()),
            false => {
                let detail =
                    format!("found {}, needed a UUID of version 4 in lower case", quote(&self.receipt_id));
                Err(VrfRule::ReceiptId.in_header(RECEIPT_ID.1, detail))
            }
        }
    }

    /// Checks that the header agrees with the receipt in the payload.
    pub(super) fn agree_with(&self, receipt: &Receipt) -> Result<(), Violation> {
        if self.version != super::VERSION {
            return Err(VrfRule::VersionAgrees.in_header(VERSION.1, unlike(&self.version, super::VERSION)));
        }
        if self.receipt_id != receipt.receipt_id {
            return Err(VrfRule::ReceiptIdAgrees
                .in_header(RECEIPT_ID.1, unlike(&self.receipt_id, &receipt.receipt_id)));
        }
        match &receipt.subject {
            Some(subject) if *subject != self.sub => {
                Err(VrfRule::SubjectAgrees.in_payload("/subject", unlike(subject, &self.sub)))
            }
            _ => Ok(()),
        }
    }
}

fn check_algorithm(header: &Header) -> Result<(), Violation> {
    match header.algorithm() {
        Some(Algorithm::EdDsa | Algorithm::Ed25519) => Ok(()),
        _ => Err(VrfRule::Algorithm.in_header("1", "a VRF statement is signed with EdDSA (-8)")),
    }
}

impl VrfIssuer {
    /// Reads `iss`. A did:key must be of an Ed25519 key, which `kid` names; the `kid` of another issuer is free.
    fn read(header: &Header) -> Result<VrfIssuer, Violation> {
        let iss = header.iss().unwrap_or_default();
        if !iss.is_empty() && !iss.starts_with("did:key:") {
            return Ok(VrfIssuer::Other(iss.to_owned()));
        }
        if PublicKey::from_did_key(iss).map(|key| key.curve()) != Ok(Curve::Ed25519) {
            return Err(no_did_key(iss));
        }
        let kid = header.kid().map(|kid| kid.as_ref()).unwrap_or_default();
        match kid == kid_of(iss).as_bytes() {
            true => Ok(VrfIssuer::DidKey(iss.to_owned())),
            false => Err(VrfRule::Kid.in_header("4", unlike(&text_or_hex(kid), &kid_of(iss)))),
        }
    }

    /// The `iss` of the statement.
    pub fn as_str(&self) -> &str {
        match self {
            VrfIssuer::DidKey(iss) | VrfIssuer::Other(iss) => iss,
        }
    }

    /// Refuses an issuer that is not a did:key.
    pub(super) fn must_be_did_key(&self) -> Result<(), Violation> {
        match self {
            VrfIssuer::DidKey(_) => Ok(()),
            VrfIssuer::Other(iss) => Err(no_did_key(iss)),
        }
    }
}

fn no_did_key(iss: &str) -> Violation {
    VrfRule::IssuerDidKey.in_header("15/1", format!("{} is not a did:key of an Ed25519 key", quote(iss)))
}

/// Returns `sub`, which is a DID or URN.
fn subject(header: &Header) -> Result<&str, Violation> {
    let sub = header.sub().unwrap_or_default();
    match is_did_or_urn(sub) {
        true => Ok(sub),
        false => {
            Err(VrfRule::Subject.in_header("15/2", format!("{} is neither a DID nor a URN", quote(sub))))
        }
    }
}

/// Formats a `kid`, which may be arbitrary bytes.
fn text_or_hex(kid: &[u8]) -> String {
    match std::str::from_utf8(kid) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("hex {}", HEXLOWER.encode(kid)),
    }
}

fn label_text(header: &Header, (number, path): (i64, &'static str)) -> Result<String, Violation> {
    match header.get(&Label::Int(number)) {
        Some(Value::Text(text)) => Ok(text.into_owned()),
        Some(_) => Err(VrfRule::Labels.in_header(path, "text is needed here")),
        None => Err(VrfRule::Labels.in_header(path, "this label is required")),
    }
}

/// The value of label -70004.
enum Previous {
    Absent,
    Null,
    Receipt(EntryDigest),
}

impl Chain {
    /// Adds the facts of the chain.
    pub(super) fn state(&self, facts: &mut Facts) {
        let position = match self {
            Chain::Unchained => return,
            Chain::Genesis => 0,
            Chain::Link { position, previous } => {
                facts.text("previous", &previous.to_string());
                *position
            }
        };
        facts.put("chain_position", position.into());
    }

    fn read(header: &Header) -> Result<Chain, Violation> {
        match (Previous::read(header)?, chain_position(header)?) {
            (Previous::Absent, None) => Ok(Chain::Unchained),
            (Previous::Absent | Previous::Null, Some(0)) => Ok(Chain::Genesis),
            (Previous::Receipt(previous), Some(position @ 1..)) => Ok(Chain::Link { position, previous }),
            (Previous::Receipt(_), Some(0)) => {
                Err(VrfRule::Genesis.in_header(PREV_RECEIPT_HASH.1, "position 0 has no predecessor"))
            }
            (Previous::Absent | Previous::Null, Some(_)) => {
                Err(VrfRule::Genesis.in_header(PREV_RECEIPT_HASH.1, "only position 0 has no predecessor"))
            }
            (Previous::Null | Previous::Receipt(_), None) => {
                Err(VrfRule::ChainLabels
                    .in_header(CHAIN_POSITION.1, "label -70004 is there, so -70005 must be"))
            }
        }
    }
}

impl Previous {
    fn read(header: &Header) -> Result<Previous, Violation> {
        let refuse = |detail: &str| Err(VrfRule::PrevReceiptHash.in_header(PREV_RECEIPT_HASH.1, detail));
        match header.get(&Label::Int(PREV_RECEIPT_HASH.0)) {
            None => Ok(Previous::Absent),
            Some(Value::Null) => Ok(Previous::Null),
            Some(Value::Text(hash)) => match entry_id(&hash) {
                Some(id) if id.as_bytes() != &[0; 32] => Ok(Previous::Receipt(id)),
                Some(_) => refuse("a hash of zeros is not a predecessor: a first receipt says null"),
                None => refuse("\"sha256:\" and 64 lower-case hex digits are needed here, or null"),
            },
            Some(_) => refuse("text or null is needed here"),
        }
    }
}

fn entry_id(hash: &str) -> Option<EntryDigest> {
    let digits = hash.strip_prefix("sha256:").filter(|_| is_hash(hash))?;
    digits.parse().ok()
}

fn chain_position(header: &Header) -> Result<Option<u64>, Violation> {
    match header.get(&Label::Int(CHAIN_POSITION.0)) {
        None => Ok(None),
        Some(Value::Unsigned(position)) if position <= MAX_CHAIN_POSITION => Ok(Some(position)),
        Some(Value::Unsigned(_)) => {
            Err(VrfRule::ChainPosition.in_header(CHAIN_POSITION.1, "a position is at most 2^53 - 1"))
        }
        Some(_) => {
            Err(VrfRule::ChainPosition.in_header(CHAIN_POSITION.1, "an unsigned integer is needed here"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kid_that_is_no_text_is_told_in_hex() {
        assert_eq!(text_or_hex(b"did:key:z6Mk#z6Mk"), "did:key:z6Mk#z6Mk");
        assert_eq!(text_or_hex(&[0xff, 0x00, 0x10]), "hex ff0010");
    }
}
