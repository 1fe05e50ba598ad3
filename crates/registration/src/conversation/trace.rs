//! Trace-metadata, which stands unprotected beside a signed record (reading C-4).
//!
//! Nobody signed it, so it may only repeat what the payload says: it can refuse a statement and never admits one, and it is
//! not stored. Its content-hash is over the payload's bytes as signed.

use data_encoding::HEXLOWER_PERMISSIVE;

use super::node::Node;
use super::rule::ConversationRule as Rule;
use super::time::Timestamp;
use super::{ConversationRecord, SessionId, cbor, shape, walk};
use crate::rule::in_unprotected;
use crate::violation::{Violation, pointer_step, quote};

/// What the document calls native session formats: a payload in one of them is no record.
const NATIVE: [&str; 5] = ["claude-jsonl", "gemini-json", "codex-jsonl", "opencode-json", "cursor-jsonl"];

/// Checks that the metadata, as encoded under `label`, says what the record says.
pub(super) fn check(label: i64, encoded: &[u8], record: &ConversationRecord) -> Result<(), Violation> {
    let metadata = cbor::read(encoded).map_err(|flaw| moved(label, flaw))?;
    walk::check(&metadata, &shape::TRACE_METADATA).map_err(|flaw| moved(label, flaw))?;
    Trace { label, metadata: &metadata, record }.check()
}

/// A flaw of the map as a whole, at its place in the header.
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
    record: &'t ConversationRecord,
}

impl Trace<'_> {
    fn check(&self) -> Result<(), Violation> {
        self.format()?;
        self.content_hash()?;
        let (session, agent) = (&self.record.session, &self.record.agent);
        let id = self.metadata.get("session-id").and_then(SessionId::of);
        self.agree(Rule::TraceSessionId, "session-id", id.as_ref(), &session.id)?;
        let vendor = self.metadata.text("agent-vendor");
        self.agree(Rule::TraceAgentVendor, "agent-vendor", vendor, agent.model_provider.as_str())?;
        self.time("timestamp-start", session.start.as_ref())?;
        self.time("timestamp-end", session.end.as_ref())
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

    fn content_hash(&self) -> Result<(), Violation> {
        let refuse = |member, detail: String| Err(self.unlike(Rule::TraceContentHash, member, detail));
        if let Some(algorithm) = self.metadata.text("content-hash-alg").filter(|name| *name != "sha-256") {
            return refuse("content-hash-alg", format!("{} is not sha-256", quote(algorithm)));
        }
        let Some(hash) = self.metadata.text("content-hash") else { return Ok(()) };
        match HEXLOWER_PERMISSIVE.decode(hash.as_bytes()) {
            Ok(digest) if digest == self.record.digest => Ok(()),
            Ok(digest) if digest.len() == self.record.digest.len() => {
                refuse("content-hash", "not the SHA-256 of the payload's bytes".to_owned())
            }
            _ => refuse("content-hash", format!("{} is not 64 hex digits", quote(hash))),
        }
    }

    fn time(&self, member: &'static str, record: Option<&Timestamp>) -> Result<(), Violation> {
        let said = self.metadata.get(member).and_then(Timestamp::of);
        match record.filter(|_| said.is_some()) {
            Some(record) => self.agree(Rule::TraceTimestamp, member, said.as_ref(), record),
            None => Ok(()),
        }
    }

    fn agree<T: PartialEq + ?Sized>(
        &self,
        rule: Rule,
        member: &str,
        said: Option<&T>,
        record: &T,
    ) -> Result<(), Violation> {
        match said == Some(record) {
            true => Ok(()),
            false => Err(self.unlike(rule, member, "not what the signed record says".to_owned())),
        }
    }

    fn unlike(&self, rule: Rule, member: &str, detail: String) -> Violation {
        in_unprotected(rule.name(), format!("{}/{}", self.label, pointer_step(member)), detail)
    }
}
