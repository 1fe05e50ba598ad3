//! A conversation statement whose every part can be made wrong.

use data_encoding::HEXLOWER;
use scitt::cbor;
use scitt::{Signer, StatementBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{json_as_cbor, recorder};

/// The parts of a statement. It starts out as one that keeps every rule.
pub struct Draft {
    payload: Vec<u8>,
    content_type: &'static str,
    /// An unprotected label and its value.
    unprotected: Option<(i64, cbor::Value<'static>)>,
}

/// A record that keeps every rule and has little else.
pub fn record() -> Value {
    json!({
        "version": "3.0.0-draft",
        "id": "r",
        "session": {
            "session-id": "s",
            "session-start": "2026-02-01T12:00:00Z",
            "session-end": 1_769_947_260_000_u64,
            "agent-meta": { "model-id": "m", "model-provider": "p" },
            "entries": [{ "type": "user", "id": "e1", "content": "hi" }]
        }
    })
}

/// The record with other entries.
pub fn with_entries(entries: Value) -> Value {
    let mut record = record();
    record["session"]["entries"] = entries;
    record
}

/// The record with a file that lines are attributed in.
pub fn with_file(file: Value) -> Value {
    let mut record = record();
    record["file-attribution"] = json!({ "files": [file] });
    record
}

/// Trace-metadata that repeats what the record says.
pub fn trace() -> Value {
    let digest = HEXLOWER.encode(&Sha256::digest(text_of(&record())));
    json!({
        "session-id": "s",
        "agent-vendor": "p",
        "trace-format": "ietf-vac-v3.0",
        "timestamp-start": "2026-02-01T12:00:00Z",
        "timestamp-end": 1_769_947_260_000_u64,
        "content-hash": digest,
        "content-hash-alg": "sha-256"
    })
}

/// Its JSON, the same on every run.
pub fn text_of(record: &Value) -> String {
    String::from_utf8(jose::jcs::canonical(record)).unwrap()
}

impl Draft {
    /// Exactly these bytes.
    pub fn of(payload: impl Into<Vec<u8>>) -> Draft {
        Draft { payload: payload.into(), content_type: "application/agent-conversation", unprotected: None }
    }

    /// This record, in JSON.
    pub fn json(record: &Value) -> Draft {
        Draft::of(text_of(record))
    }

    /// This record, in CBOR.
    pub fn cbor(record: &Value) -> Draft {
        Draft::of(json_as_cbor(record).encode())
    }

    /// The record in JSON with one text replaced.
    pub fn text(from: &str, to: &str) -> Draft {
        let text = text_of(&record());
        assert!(text.contains(from), "{from} is not in the record");
        Draft::of(text.replacen(from, to, 1))
    }

    /// The record in CBOR, with one more member of these bytes, which are its name and value.
    pub fn cbor_with(member: &[u8]) -> Draft {
        let mut bytes = json_as_cbor(&record()).encode();
        assert_eq!(bytes[0], 0xa3);
        bytes[0] = 0xa4;
        bytes.extend_from_slice(member);
        Draft::of(bytes)
    }

    /// The record with trace-metadata beside it.
    pub fn trace(metadata: &Value) -> Draft {
        Draft::json(&record()).unprotected(100, json_as_cbor(metadata))
    }

    pub fn unprotected(self, label: i64, value: cbor::Value<'static>) -> Draft {
        Draft { unprotected: Some((label, value)), ..self }
    }

    pub fn content_type(self, content_type: &'static str) -> Draft {
        Draft { content_type, ..self }
    }

    pub fn sign(self) -> Vec<u8> {
        let iss = recorder().public_key().did_key();
        let mut builder = StatementBuilder::new(self.payload)
            .content_type(self.content_type)
            .kid(iss.as_bytes())
            .iss(&iss)
            .sub("s");
        if let Some((label, value)) = self.unprotected {
            builder = builder.unprotected(label, value);
        }
        builder.encode(&recorder()).unwrap()
    }
}
