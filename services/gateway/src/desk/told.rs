//! What a caller is told: the Verdict, and where its record is.

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

/// A decision, durable unless it says otherwise.
#[derive(Debug)]
pub struct Told {
    /// What was decided. Its signed form is [`text`](Self::text).
    pub verdict: Verdict,
    /// The signed Verdict, byte for byte as it was persisted. It goes into the slot in the caller's shape.
    pub text: String,
    /// Whether, in which shape and under which key it is told.
    pub telling: Telling,
    /// Where the record is. None if there is no record: then nothing was admitted either.
    pub evidence: Option<Evidence>,
    /// What lets a call go on. None: nothing may be forwarded.
    pub pass: Option<Pass>,
    /// The ruling in full. None if nothing was ruled, since no record could be made.
    pub ruling: Option<Box<Ruling>>,
}

/// Where a record is, and the key that opens its commitments and no others (4.10).
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Its place on the log.
    pub audit_ref: String,
    /// Its entry ID.
    pub id: EntryDigest,
    /// Its number in the stream.
    pub seq: u64,
    /// The key of its commitments.
    pub key: RecordKey,
    /// The log's receipt, where one was waited for.
    pub receipt: Option<Bytes>,
}

impl Told {
    /// A ruling that is durable, with what lets its call go on.
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

    /// E(n), the commitment in force now, as JSON: after one was accepted or amended (V-17).
    pub fn commitment(&self) -> Option<&str> {
        self.ruling.as_ref()?.effective.as_deref()
    }
}

impl Evidence {
    /// As it stands in an answer's `_meta`, under `dev.tabellion/evidence`.
    pub fn to_json(&self) -> String {
        let mut evidence = json!({ "audit_ref": self.audit_ref, "seq": self.seq, "key": self.key.to_text() });
        if let Some(receipt) = &self.receipt {
            evidence["receipt"] = BASE64URL_NOPAD.encode(receipt).into();
        }
        evidence.to_string()
    }
}

/// What a Verdict's signature says of it (V-25).
///
/// # Errors
/// If there is no randomness.
pub fn binding(now: u64, req: Option<Digest>) -> Result<Binding, DeskError> {
    Ok(Binding { iat: now / 1000, jti: HEXLOWER.encode(&random::<16>()?), req })
}

/// What is told when no record could be made: a denial that is signed, and stands nowhere.
pub fn unrecorded(house: &House, verdict: Verdict, telling: Telling, req: Option<Digest>) -> Told {
    let binding = binding(house.clock.milliseconds(), req);
    let signed = binding.and_then(|binding| Ok(verdict.sign(&house.verdict, &binding)?));
    let text = signed.unwrap_or_else(|error| {
        tracing::error!(%error, "a denial goes out unsigned");
        verdict.to_value().to_string()
    });
    Told { verdict, text, telling, evidence: None, pass: None, ruling: None }
}
