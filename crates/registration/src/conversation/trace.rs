//! Trace-metadata: an unprotected header parameter of a signed record (reading C-4).
//!
//! It is not signed, so it may only repeat what the payload contains: it can refuse a statement, but never admit one,
//! and it is not stored. Its times are compared as points in time, since the draft allows two representations (section
//! 3.1). Its content-hash is computed over the payload's bytes as signed; with a hash envelope, it may also be the
//! digest in the envelope.

use data_encoding::HEXLOWER_PERMISSIVE;
use jose::json::pointer_step;
use jose::members::quote;
use scitt::SignedStatement;
use scitt::header::{ContentType, HashEnvelope};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::node::Node;
use super::rule::ConversationRule as Rule;
use super::time::Timestamp;
use super::{AGENT_CONVERSATION, ConversationRecord, SessionId, cbor, shape, walk};
use crate::content_types::{content_type, essence};
use crate::rule::in_unprotected;
use crate::violation::Violation;

/// The unprotected label of trace-metadata, until one is registered.
pub(super) const DEFAULT_LABEL: i64 = 100;

/// The draft's names of native session formats. A payload in one of them is not a record.
const NATIVE: [&str; 5] = ["claude-jsonl", "gemini-json", "codex-jsonl", "opencode-json", "cursor-jsonl"];

/// A result of [`check_trace_metadata`] other than a contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceMetadata {
    /// The statement has no trace-metadata.
    Absent,
    /// The trace-metadata agrees with the record.
    Agrees,
    /// The record is not available, or the statement is not a conversation record, so that not everything was compared.
    NotCompared,
}

/// Compares a statement's trace-metadata, under the default label, with its record, for verification without a log.
/// `record` is the payload of a detached statement, or the preimage of a hash envelope.
///
/// # Errors
/// A [`Violation`] if the trace-metadata contradicts the record.
pub fn check_trace_metadata(
    statement: &SignedStatement,
    record: Option<&[u8]>,
) -> Result<TraceMetadata, Violation> {
    let label = DEFAULT_LABEL;
    let Some(encoded) = statement.unprotected(label) else { return Ok(TraceMetadata::Absent) };
    let header = statement.header();
    let name = content_type(header).and_then(ContentType::as_text).map(essence);
    if name.as_deref() != Some(AGENT_CONVERSATION) {
        return Ok(TraceMetadata::NotCompared);
    }
    let envelope = header.hash_envelope().zip(statement.payload());
    if let Some((envelope, digest)) = envelope {
        check_hash_envelope(label, encoded, envelope, digest)?;
    }
    let Some(bytes) = record.or(statement.payload().filter(|_| envelope.is_none())) else {
        return Ok(TraceMetadata::NotCompared);
    };
    let record = ConversationRecord::read(header, bytes)?;
    match envelope {
        Some(_) => Trace::read(label, encoded, |trace| trace.session(&record))?,
        None => check(label, encoded, &record, bytes)?,
    }
    Ok(TraceMetadata::Agrees)
}

/// Checks that the trace-metadata, encoded under `label`, agrees with the record. `payload` is the record as signed.
pub(super) fn check(
    label: i64,
    encoded: &[u8],
    record: &ConversationRecord,
    payload: &[u8],
) -> Result<(), Violation> {
    Trace::read(label, encoded, |trace| {
        trace.format()?;
        trace.content_hash(|hash, digest| hash.of(payload) == digest)?;
        trace.session(record)
    })
}

/// Checks the trace-metadata of a hash envelope, as far as possible without the record: its form, and that its hash is
/// the digest in the envelope, or a hash of the envelope's payload.
pub(super) fn check_hash_envelope(
    label: i64,
    encoded: &[u8],
    envelope: &HashEnvelope,
    payload: &[u8],
) -> Result<(), Violation> {
    Trace::read(label, encoded, |trace| {
        trace.format()?;
        trace.content_hash(|hash, digest| {
            let of_record = hash.cose_id() == envelope.algorithm && digest == payload;
            of_record || hash.of(payload) == digest
        })
    })
}

/// Hash functions that `content-hash-alg` may name.
#[derive(Clone, Copy)]
enum HashFunction {
    Sha256,
    Sha384,
    Sha512,
}

impl HashFunction {
    const NAMES: &str = "sha-256, sha-384, sha-512";

    /// Returns the function with this name; SHA-256 if there is none.
    fn named(name: Option<&str>) -> Option<Self> {
        match name {
            None | Some("sha-256") => Some(Self::Sha256),
            Some("sha-384") => Some(Self::Sha384),
            Some("sha-512") => Some(Self::Sha512),
            Some(_) => None,
        }
    }

    fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha384 => Sha384::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// The COSE algorithm identifier, as in a hash envelope (RFC 9054).
    fn cose_id(self) -> i64 {
        match self {
            Self::Sha256 => -16,
            Self::Sha384 => -43,
            Self::Sha512 => -44,
        }
    }

    /// Length of a digest in bytes.
    fn length(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// Moves a violation from the decoded map to the unprotected header parameter `label`.
fn moved(label: i64, flaw: Violation) -> Violation {
    let rule = match flaw.rule.as_str() {
        name if name == Rule::ClosedMap.name() => Rule::ClosedMap,
        _ => Rule::TraceMetadata,
    };
    let pointer = flaw.place.to_string();
    let pointer = pointer.strip_prefix("payload").unwrap_or_default();
    in_unprotected(rule.name(), format!("{label}{pointer}"), flaw.detail)
}

struct Trace<'t> {
    label: i64,
    metadata: &'t Node<'t>,
}

impl Trace<'_> {
    /// Parses the trace-metadata and passes it to a check.
    fn read(
        label: i64,
        encoded: &[u8],
        check: impl FnOnce(Trace<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let metadata = cbor::read(encoded).map_err(|flaw| moved(label, flaw))?;
        walk::check(&metadata, &shape::TRACE_METADATA).map_err(|flaw| moved(label, flaw))?;
        check(Trace { label, metadata: &metadata })
    }

    fn format(&self) -> Result<(), Violation> {
        match self.metadata.text("trace-format") {
            Some(native) if NATIVE.contains(&native) => Err(self.unlike(
                Rule::TraceFormat,
                "trace-format",
                format!("{} is a native session format, and the payload is a record", quote(native)),
            )),
            _ => Ok(()),
        }
    }

    /// Checks the content-hash. A hash with an unsupported algorithm could be wrong, so it is refused.
    fn content_hash(&self, is_right: impl Fn(HashFunction, &[u8]) -> bool) -> Result<(), Violation> {
        let refuse = |member, detail: String| Err(self.unlike(Rule::TraceContentHash, member, detail));
        let name = self.metadata.text("content-hash-alg");
        let Some(function) = HashFunction::named(name) else {
            let detail = format!("{} is not one of {}", quote(name.unwrap_or_default()), HashFunction::NAMES);
            return refuse("content-hash-alg", detail);
        };
        let Some(hash) = self.metadata.text("content-hash") else { return Ok(()) };
        match HEXLOWER_PERMISSIVE.decode(hash.as_bytes()) {
            Ok(digest) if is_right(function, &digest) => Ok(()),
            Ok(digest) if digest.len() == function.length() => {
                refuse("content-hash", "not the hash of the payload's bytes".to_owned())
            }
            _ => {
                refuse("content-hash", format!("{} is not {} hex digits", quote(hash), 2 * function.length()))
            }
        }
    }

    /// Compares session identifier, vendor and times.
    fn session(&self, record: &ConversationRecord) -> Result<(), Violation> {
        let (session, agent) = (&record.session, &record.agent);
        let id = self.metadata.get("session-id").and_then(SessionId::of);
        self.agree(Rule::TraceSessionId, "session-id", id.as_ref() == Some(&session.id))?;
        let vendor = self.metadata.text("agent-vendor");
        self.agree(Rule::TraceAgentVendor, "agent-vendor", vendor == Some(&agent.model_provider))?;
        self.time("timestamp-start", session.start.as_ref())?;
        self.time("timestamp-end", session.end.as_ref())
    }

    fn time(&self, member: &'static str, record: Option<&Timestamp>) -> Result<(), Violation> {
        let stated = self.metadata.get(member).and_then(Timestamp::of);
        match stated.as_ref().zip(record) {
            Some((stated, record)) => self.agree(Rule::TraceTimestamp, member, stated.is_same_time(record)),
            None => Ok(()),
        }
    }

    fn agree(&self, rule: Rule, member: &str, agrees: bool) -> Result<(), Violation> {
        match agrees {
            true => Ok(()),
            false => Err(self.unlike(rule, member, "differs from the signed record".to_owned())),
        }
    }

    fn unlike(&self, rule: Rule, member: &str, detail: String) -> Violation {
        in_unprotected(rule.name(), format!("{}/{}", self.label, pointer_step(member)), detail)
    }
}
