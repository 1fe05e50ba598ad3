//! The response to a decision: the signed Verdict, and the location of its record.

use admission::decide::{Ruling, Telling};
use admission::digest::Digest;
use admission::record::RecordKey;
use admission::verdict::{Binding, Verdict};
use bytes::Bytes;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use merkle::EntryDigest;
use serde_json::json;

use super::decisions::Written;
use super::error::DeskError;
use super::house::House;
use super::pass::Pass;
use super::states::random;

/// A decision for its caller. It is durable if [`evidence`](Self::evidence) is present.
#[derive(Debug)]
pub struct Told {
    /// The decision. Its signed form is [`text`](Self::text).
    pub verdict: Verdict,
    /// The signed Verdict exactly as stored, for the VAP slot in the caller's shape.
    pub text: String,
    /// The shape and the key of the Verdict in the answer, or [`Telling::Silent`] if it is left out.
    pub telling: Telling,
    /// The location of the record. `None` if there is no record, which implies a denial.
    pub evidence: Option<Evidence>,
    /// The permission to forward a call. `None` if nothing may be forwarded.
    pub pass: Option<Pass>,
    /// The full ruling. `None` if it has no record.
    pub ruling: Option<Box<Ruling>>,
}

/// The location of a record, and the key that opens its commitments and no others (4.10).
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The URL of the record at the log.
    pub audit_ref: String,
    /// The record's entry ID.
    pub id: EntryDigest,
    /// The record's sequence number in its stream.
    pub seq: u64,
    /// The key of the record's commitments.
    pub key: RecordKey,
    /// The log's receipt, if one was waited for.
    pub receipt: Option<Bytes>,
}

impl Told {
    /// The response for a durable ruling. `pass` permits its call.
    pub fn of(ruling: Box<Ruling>, written: Written, pass: Option<Pass>) -> Self {
        Self {
            verdict: ruling.verdict.clone(),
            text: written.text,
            telling: ruling.telling,
            evidence: Some(written.evidence),
            pass,
            ruling: Some(ruling),
        }
    }

    /// Returns the effective commitment E(n) as JSON, after a commitment or an amendment was accepted (V-17).
    pub fn commitment(&self) -> Option<&str> {
        self.ruling.as_ref()?.effective.as_deref()
    }
}

impl Evidence {
    /// Returns the JSON for the member `dev.tabellion/evidence` of an answer's `_meta`.
    pub fn to_json(&self) -> String {
        let mut evidence = json!({ "audit_ref": self.audit_ref, "seq": self.seq, "key": self.key.to_text() });
        if let Some(receipt) = &self.receipt {
            evidence["receipt"] = BASE64URL_NOPAD.encode(receipt).into();
        }
        evidence.to_string()
    }
}

/// The claims that a Verdict's signature covers besides it (V-25). `now` is in milliseconds since the Unix epoch.
///
/// # Errors
/// [`DeskError::Unsigned`] if the system provides no randomness.
pub fn binding(now: u64, req: Option<Digest>) -> Result<Binding, DeskError> {
    Ok(Binding { iat: now / 1000, jti: HEXLOWER.encode(&random::<16>()?), req })
}

/// The response without a record: a signed denial. It is unsigned if signing fails, too.
pub fn unrecorded(house: &House, verdict: Verdict, telling: Telling, req: Option<Digest>) -> Told {
    let binding = binding(house.clock.milliseconds(), req);
    let signed = binding.and_then(|binding| Ok(verdict.sign(&house.verdict, &binding)?));
    let text = signed.unwrap_or_else(|error| {
        tracing::error!(%error, "a denial goes out unsigned");
        verdict.to_value().to_string()
    });
    Told { verdict, text, telling, evidence: None, pass: None, ruling: None }
}
