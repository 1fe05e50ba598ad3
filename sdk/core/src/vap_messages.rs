//! VAP: messages of an agent with their signatures, the gateway's Verdicts, and the form of recorded objects.

use jose::jcs;
use jose::json::parse_text;
use jose::jws::{self, Jws};
use scitt::{PublicKey, Signer};
use serde::Deserialize;
use serde_json::{Value, json};
use vap::audit::AuditRecord;
use vap::digest::Digest;
use vap::glob::{self, Pattern};
use vap::message::Message;
use vap::message::slot::{self, Carrier, Key, Shape};
use vap::verdict::{SIGNATURE_TYPE, Verdict};

use crate::bytes::{ByteString, base64url};
use crate::error::CoreError;
use crate::keys::{PrivateKey, public_key};

/// Checks a message, signs it, and returns it as text with its digest: the commitment digest, which leaves the signature
/// out (reading V-17). Without a key, the message is only checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignMessage {
    /// The text of the message as JSON.
    message: String,
    private_key: Option<PrivateKey>,
    /// Key identifier in the header; by default the thumbprint of the key.
    kid: Option<String>,
    /// Time of signing in Unix seconds.
    iat: Option<u64>,
    /// Unique identifier of the signed message.
    jti: Option<String>,
    /// The gateway for which the message is signed.
    aud: Option<String>,
}

/// Reads the message of a request as a gateway does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadMessage {
    /// The method of the JSON-RPC request.
    method: String,
    /// The text under `_meta.vap`.
    text: Option<String>,
    /// The text under `_meta["dev.tabellion/vap"]`.
    own: Option<String>,
}

/// Verifies the signature of a Verdict by the gateway's key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyVerdict {
    /// The text of the Verdict as JSON.
    verdict: String,
    public_key: String,
    /// The text of the message that the Verdict must answer.
    message: Option<String>,
}

/// Checks the form of a VAP object in a statement. Its signature and the rest of the log are not considered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckObject {
    payload: ByteString,
}

/// Computes the digest of a JSON text over its canonical form (RFC 8785), in VAP's notation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestJson {
    json: String,
}

/// Matches a tool's name with a scope.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchPattern {
    tool: String,
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

impl SignMessage {
    pub(crate) fn sign(self) -> Result<Value, CoreError> {
        Message::read(&self.message).map_err(|flaw| CoreError::new(&flaw.reason.as_str(), &flaw))?;
        let mut message = value(&self.message)?;
        if let Some(members) = message.as_object_mut() {
            members.remove("signature");
        }
        let canonical = jcs::canonical(&message);
        if let Some(key) = &self.private_key {
            let key = key.signing_key()?;
            let input = jws::signing_input(&self.header(&key)?, &canonical);
            let signature = key.sign(&input).map_err(|error| CoreError::new("signing-failed", error))?;
            message["signature"] = jws::detached(&input, &signature).into();
        }
        Ok(json!({ "message": message.to_string(), "digest": Digest::of(&canonical).as_str() }))
    }

    fn header(&self, key: &dyn Signer) -> Result<Value, CoreError> {
        let alg = match key.algorithm() {
            scitt::Algorithm::EdDsa | scitt::Algorithm::Ed25519 => "EdDSA",
            scitt::Algorithm::Es256 | scitt::Algorithm::Esp256 => "ES256",
            other => {
                let what = format!("VAP messages are signed with EdDSA or ES256, not with {other}");
                return Err(CoreError::new("unknown-algorithm", what));
            }
        };
        let kid = self.kid.clone().unwrap_or_else(|| key.public_key().jwk_thumbprint());
        let mut header = json!({ "alg": alg, "kid": kid });
        if let Some(iat) = self.iat {
            header["iat"] = iat.into();
        }
        for (name, text) in [("jti", &self.jti), ("aud", &self.aud)] {
            if let Some(text) = text {
                header[name] = text.as_str().into();
            }
        }
        Ok(header)
    }
}

impl ReadMessage {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        let carrier = Carrier::of_method(&self.method)
            .ok_or_else(|| CoreError::new("wrong_carrier", "this method carries no VAP message"))?;
        let received = slot::read(self.text.as_deref(), self.own.as_deref(), carrier)
            .map_err(|unreadable| CoreError::new(&unreadable.reason.as_str(), &unreadable.what))?
            .ok_or_else(|| CoreError::new("malformed", "the request has no VAP message"))?;
        Ok(json!({
            "type": received.message.kind().as_str(),
            "session_id": received.message.session_id(),
            "digest": received.digest.as_str(),
            "shape": match received.shape { Shape::Flat => "flat", Shape::Nested => "nested" },
            "canon": received.canon_raw.then_some("raw"),
            "key": match received.key { Key::Vap => "vap", Key::Own => "own", Key::Both => "both" },
        }))
    }
}

impl VerifyVerdict {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let mut verdict = value(&self.verdict)?;
        let invalid = |what: &dyn ToString| CoreError::new("verdict-signature-invalid", what.to_string());
        let signature = verdict.as_object_mut().and_then(|members| members.remove("signature"));
        let Some(Value::String(signature)) = signature else {
            return Err(invalid(&"the Verdict is not signed"));
        };
        let jws =
            Jws::open(&signature, &jcs::canonical(&verdict), &["req"]).map_err(|error| invalid(&error))?;
        let key: PublicKey = public_key(&self.public_key)?;
        key.verify_jws(&jws).map_err(|error| invalid(&error))?;
        if jws.text("typ") != Some(SIGNATURE_TYPE) {
            return Err(invalid(&format!("the signature is not of the type {SIGNATURE_TYPE}")));
        }
        if let Some(message) = &self.message {
            let digest = Digest::of(&jcs::canonical(&value(message)?));
            if jws.text("req") != Some(digest.as_str()) {
                return Err(CoreError::new(
                    "verdict-of-another-message",
                    "the Verdict answers another message",
                ));
            }
        }
        let verdict: Verdict =
            serde_json::from_value(verdict).map_err(|error| CoreError::new("malformed-verdict", error))?;
        Ok(json!({ "verdict": verdict.verdict.as_str(), "session_id": verdict.session_id, "iat": jws.iat() }))
    }
}

impl CheckObject {
    pub(crate) fn check(self) -> Result<Value, CoreError> {
        let record = AuditRecord::read(&self.payload.0).map_err(|broken| {
            CoreError::new(broken.rule, format!("{} (at {:?})", broken.detail, broken.pointer))
        })?;
        Ok(json!({ "session_id": record.session() }))
    }
}

impl DigestJson {
    pub(crate) fn compute(self) -> Result<Value, CoreError> {
        let canonical = jcs::canonical(&value(&self.json)?);
        Ok(json!({ "canonical": base64url(&canonical), "digest": Digest::of(&canonical).as_str() }))
    }
}

impl MatchPattern {
    pub(crate) fn matches(self) -> Result<Value, CoreError> {
        let patterns = |texts: Vec<String>| {
            let parsed = texts.iter().map(|text| Pattern::new(text));
            parsed.collect::<Result<Vec<_>, _>>().map_err(|error| CoreError::new("malformed", error))
        };
        let (allow, deny) = (patterns(self.allow)?, patterns(self.deny)?);
        Ok(json!({ "allowed": glob::allows(&allow, &deny, &self.tool) }))
    }
}

fn value(text: &str) -> Result<Value, CoreError> {
    parse_text(text).map_err(|error| CoreError::new("malformed", error))
}
