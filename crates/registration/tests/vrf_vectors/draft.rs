//! A VRF statement whose every part can be made wrong.

use std::collections::BTreeMap;

use registration::vrf::{Form, VRF_CBOR, kid_of};
use scitt::cbor::Value as Cbor;
use scitt::{Signer, SigningKey, StatementBuilder};
use serde_json::Value;
use testkit::{AGENT, receipt_json, verifier};

/// The parts of a statement. It starts out as one that keeps every rule, at position 0 of its chain.
pub struct Draft {
    payload: Vec<u8>,
    content_type: &'static str,
    /// Labels 258 and 259 instead of the content type.
    hash_of: Option<(i64, &'static str)>,
    iss: String,
    kid: String,
    sub: String,
    labels: BTreeMap<i64, Cbor<'static>>,
    signer: SigningKey,
}

impl Draft {
    /// A receipt that keeps every rule, changed.
    pub fn changed(change: impl FnOnce(&mut Value)) -> Draft {
        let mut receipt = receipt_json(0);
        change(&mut receipt);
        Draft::of(&receipt)
    }

    pub fn of(receipt: &Value) -> Draft {
        Draft::of_json(&jose_canonical(receipt))
            .label(-70003, receipt["receipt_id"].as_str().unwrap_or_default())
    }

    /// Exactly this JSON, in a byte string.
    pub fn of_json(json: &[u8]) -> Draft {
        Draft::of_payload(Form::B.wrap(json))
    }

    /// Exactly this payload.
    pub fn of_payload(payload: impl Into<Vec<u8>>) -> Draft {
        let did = verifier().public_key().did_key();
        let receipt = receipt_json(0);
        let draft = Draft {
            payload: payload.into(),
            content_type: VRF_CBOR,
            hash_of: None,
            kid: kid_of(&did),
            sub: AGENT.to_owned(),
            labels: BTreeMap::from([(-70004, Cbor::Null), (-70005, Cbor::Unsigned(0))]),
            signer: verifier(),
            iss: did.clone(),
        };
        let id = receipt["receipt_id"].as_str().unwrap_or_default();
        draft.label(-70001, "1.0").label(-70002, &did).label(-70003, id)
    }

    /// Exactly this as the hash of a receipt of this type.
    pub fn hash_of(self, algorithm: i64, content_type: &'static str, hash: impl Into<Vec<u8>>) -> Draft {
        Draft { payload: hash.into(), hash_of: Some((algorithm, content_type)), ..self }
    }

    /// The SHA-256 of its payload instead of it.
    pub fn redacted(self) -> Draft {
        let hash = *merkle::EntryDigest::of(&self.payload).as_bytes();
        self.hash_of(-16, VRF_CBOR, hash)
    }

    pub fn payload(&self) -> Vec<u8> {
        self.payload.clone()
    }

    /// The next receipt of the chain, after one with this statement.
    pub fn after(self, previous: &[u8], position: u64) -> Draft {
        let previous = scitt::SignedStatement::parse(previous.to_vec()).unwrap().digest();
        self.at(position).label(-70004, &format!("sha256:{previous}"))
    }

    pub fn content_type(self, content_type: &'static str) -> Draft {
        Draft { content_type, ..self }
    }

    pub fn label(self, label: i64, text: &str) -> Draft {
        self.raw_label(label, Cbor::from(text.to_owned()))
    }

    pub fn raw_label(mut self, label: i64, value: Cbor<'static>) -> Draft {
        self.labels.insert(label, value);
        self
    }

    pub fn without(mut self, label: i64) -> Draft {
        self.labels.remove(&label);
        self
    }

    pub fn at(self, position: u64) -> Draft {
        self.raw_label(-70005, Cbor::Unsigned(position))
    }

    /// Another issuer; label -70002 follows, kid stays.
    pub fn iss(self, iss: &str) -> Draft {
        Draft { iss: iss.to_owned(), ..self }.label(-70002, iss)
    }

    pub fn kid(self, kid: &str) -> Draft {
        Draft { kid: kid.to_owned(), ..self }
    }

    pub fn sub(self, sub: &str) -> Draft {
        Draft { sub: sub.to_owned(), ..self }
    }

    /// Signed by another key, whose did:key the statement then carries everywhere.
    pub fn signer(self, signer: SigningKey) -> Draft {
        let did = signer.public_key().did_key();
        Draft { signer, ..self.iss(&did).kid(&kid_of(&did)) }
    }

    pub fn sign(self) -> Vec<u8> {
        let builder = StatementBuilder::new(self.payload);
        let builder = match self.hash_of {
            None => builder.content_type(self.content_type),
            Some((algorithm, preimage)) => builder.hash_envelope(&scitt::HashEnvelope {
                algorithm,
                preimage_content_type: Some(preimage.into()),
                location: None,
            }),
        };
        let builder = builder.kid(self.kid).iss(&self.iss).sub(&self.sub);
        let builder =
            self.labels.into_iter().fold(builder, |builder, (label, value)| builder.label(label, value));
        builder.encode(&self.signer).unwrap()
    }
}

pub fn jose_canonical(value: &Value) -> Vec<u8> {
    jose::jcs::canonical(value)
}

/// The canonical JSON of the receipt that keeps every rule, with one piece of text replaced.
pub fn text_with(from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(jose_canonical(&receipt_json(0))).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1).into_bytes()
}
