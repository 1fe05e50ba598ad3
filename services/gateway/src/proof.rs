//! Offline verification of a Verdict, from the Verdict, a JWK set and, if available, the statement in the log.
//!
//! Checked: the signature verifies under a published key; `audit_ref` names the digest of the given statement; the
//! record in the statement has the same verdict, is bound to the same signature (`iat`, `jti`) and, opened with the
//! record key that the caller received (4.10), commits to exactly this Verdict.
//!
//! Not here: trust in the keys, and whether the statement is in the log (`tabellion verify`).

use jose::jcs;
use jose::jwk::PublicJwk;
use jose::jws::Jws;
use merkle::EntryDigest;
use registration::Violation;
use scitt::{PublicKey, SignedStatement};
use serde::Serialize;
use serde_json::Value;
use vap::audit::AuditRecord;
use vap::record_key::RecordKey;
use vap::verdict::ReceivedVerdict;

use crate::check::{CheckFinding, CheckOutcome};
use crate::jwk_set;

/// The result of verifying a Verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// The Verdict as JSON.
    pub verdict: Value,
    /// The `kid` in the signature's header; not itself verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kid: Option<String>,
    /// The `iat` in the signature's header: the claimed time of signing, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<u64>,
    /// The findings of all checks, in the order in which they were made.
    pub checks: Vec<CheckFinding>,
}

/// Inputs for verifying a Verdict. Checks without their input end as `NotChecked`.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerdictInputs<'a> {
    /// The gateway's published keys: a JWK set or a single JWK.
    pub jwks: Option<&'a [u8]>,
    /// The statement that `audit_ref` names, with or without receipts.
    pub statement: Option<&'a [u8]>,
    /// The record key that was delivered with the Verdict, in base64url: it opens the record's commitment.
    pub record_key: Option<&'a str>,
}

/// Finds the Verdict in text that a client received: a bare Verdict, a result, a whole message, or an event stream.
#[must_use]
pub fn find(text: &str) -> Option<Value> {
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    std::iter::once(text).chain(events).find_map(find_in)
}

fn find_in(text: &str) -> Option<Value> {
    let whole: Value = jose::json::parse_text(text).ok()?;
    let slots = ["", "/result/_meta/vap", "/_meta/vap", "/error/data/vap"];
    let own =
        ["/result/_meta/dev.tabellion~1vap", "/_meta/dev.tabellion~1vap", "/error/data/dev.tabellion~1vap"];
    let mut found = slots.into_iter().chain(own).filter_map(|at| whole.pointer(at));
    let is_verdict = |value: &Value| value.get("type").and_then(Value::as_str) == Some("verdict");
    found.find_map(|value| {
        let nested = value.get("verdict").filter(|inner| inner.is_object());
        [Some(value), nested].into_iter().flatten().find(|value| is_verdict(value)).cloned()
    })
}

/// Verifies a Verdict against the given inputs.
#[must_use]
pub fn prove(verdict: Value, given: VerdictInputs<'_>) -> Proof {
    let text = jcs::canonical(&verdict);
    let record = match ReceivedVerdict::read(&text) {
        Ok(record) => record,
        Err(broken) => {
            let checks = vec![finding("form", CheckOutcome::Failed, Violation::from(broken).to_string())];
            return Proof { verdict, kid: None, iat: None, checks };
        }
    };
    let mut checks = vec![finding("form", CheckOutcome::Ok, "a Verdict of VAP 0.1")];
    checks.push(signature(record.signature.as_ref(), given.jwks));
    checks.extend(bound(&verdict, &record, given));
    let kid = record.signature.as_ref().map(|jws| jws.kid().to_owned());
    let iat = record.signature.as_ref().and_then(Jws::iat);
    Proof { verdict, kid, iat, checks }
}

fn signature(jws: Option<&Jws>, jwks: Option<&[u8]>) -> CheckFinding {
    const WHAT: &str = "signature";
    let Some(jws) = jws else {
        return finding(WHAT, CheckOutcome::Failed, "a gateway's Verdicts are always signed");
    };
    let Some(jwks) = jwks else {
        return finding(WHAT, CheckOutcome::NotChecked, "no keys were given: --jwks");
    };
    let keys = match jwk_set::parse(jwks) {
        Ok(keys) => keys,
        Err(why) => return finding(WHAT, CheckOutcome::NotChecked, format!("the keys: {why}")),
    };
    // A key matches by the `kid` that the set gives it, or by its thumbprint, which gateways use as `kid`.
    let called =
        |jwk: &PublicJwk, key: &PublicKey| jwk.kid() == Some(jws.kid()) || key.jwk_thumbprint() == jws.kid();
    let mut keys = keys.iter().filter_map(|jwk| Some((jwk, PublicKey::from_jwk(jwk).ok()?)));
    match keys.find(|(jwk, key)| called(jwk, key)).map(|(_, key)| key) {
        None => finding(WHAT, CheckOutcome::NotChecked, format!("no key of the set is called {}", jws.kid())),
        Some(key) if key.verify_jws(jws).is_ok() => {
            finding(WHAT, CheckOutcome::Ok, format!("{}, kid {}", jws.algorithm().name(), jws.kid()))
        }
        Some(_) => finding(
            WHAT,
            CheckOutcome::Failed,
            "it does not verify: the Verdict was changed, or never signed",
        ),
    }
}

/// The checks against the statement that the Verdict's `audit_ref` names.
fn bound(verdict: &Value, record: &ReceivedVerdict, given: VerdictInputs<'_>) -> Vec<CheckFinding> {
    let Some(bytes) = given.statement else {
        return vec![finding("statement", CheckOutcome::NotChecked, "none was given: --statement")];
    };
    let statement = match SignedStatement::parse(bytes.to_vec()) {
        Ok(statement) => statement,
        Err(error) => return vec![finding("statement", CheckOutcome::Failed, error.to_string())],
    };
    let mut checks = vec![named(verdict, statement.digest())];
    let audit = statement
        .payload()
        .ok_or("its payload is detached".to_owned())
        .and_then(|payload| AuditRecord::read(payload).map_err(|violation| violation.to_string()));
    match audit {
        Err(why) => checks.push(finding("record", CheckOutcome::Failed, why)),
        Ok(audit) => {
            checks.push(same_verdict(record, &audit));
            checks.push(same_binding(record, &audit));
            checks.push(opened(verdict, &audit, given.record_key));
        }
    }
    checks
}

fn named(verdict: &Value, digest: EntryDigest) -> CheckFinding {
    let named = verdict.get("audit_ref").and_then(Value::as_str).and_then(|url| url.rsplit('/').next());
    match named == Some(digest.to_string().as_str()) {
        true => finding("statement", CheckOutcome::Ok, format!("entry {digest}, which audit_ref names")),
        false => {
            finding("statement", CheckOutcome::Failed, format!("audit_ref names another entry than {digest}"))
        }
    }
}

fn same_verdict(record: &ReceivedVerdict, audit: &AuditRecord) -> CheckFinding {
    let Some(decided) = audit.kind.decided() else {
        return finding("record", CheckOutcome::Failed, "the statement records no decision");
    };
    match decided.verdict == record.verdict.verdict {
        true => finding(
            "record",
            CheckOutcome::Ok,
            format!("{} in {}, record {}", decided.verdict.as_str(), audit.stream, audit.seq),
        ),
        false => {
            finding("record", CheckOutcome::Failed, format!("the log says {}", decided.verdict.as_str()))
        }
    }
}

fn same_binding(record: &ReceivedVerdict, audit: &AuditRecord) -> CheckFinding {
    let recorded = audit.kind.decided().and_then(|decided| decided.binding.as_ref());
    let (Some(jws), Some(recorded)) = (&record.signature, recorded) else {
        return finding("binding", CheckOutcome::NotChecked, "the record binds no signature");
    };
    let iat = recorded.iat == jws.iat();
    let jti = recorded.jti.as_deref() == jws.text("jti");
    match iat && jti {
        true => finding("binding", CheckOutcome::Ok, "the record was made for this signature"),
        false => finding("binding", CheckOutcome::Failed, "the record was made for another signature"),
    }
}

/// Opens the record's commitment to the Verdict. The committed text is the Verdict without `audit_ref` and `signature`.
fn opened(verdict: &Value, audit: &AuditRecord, key: Option<&str>) -> CheckFinding {
    const WHAT: &str = "commitment";
    let Some(key) = key else {
        return finding(WHAT, CheckOutcome::NotChecked, "no key was given: --record-key");
    };
    let Some(key) = RecordKey::from_text(key) else {
        return finding(WHAT, CheckOutcome::Failed, "the record key is 32 bytes in base64url");
    };
    let mut plain = verdict.clone();
    if let Some(members) = plain.as_object_mut() {
        members.remove("audit_ref");
        members.remove("signature");
    }
    let committed = audit.kind.decided().and_then(|decided| decided.committed.get("verdict"));
    match committed == Some(&key.commit("verdict", &jcs::canonical(&plain))) {
        true => finding(WHAT, CheckOutcome::Ok, "the record commits to exactly this Verdict"),
        false => finding(
            WHAT,
            CheckOutcome::Failed,
            "the record commits to something else, or the key is another one's",
        ),
    }
}

fn finding(what: &str, outcome: CheckOutcome, detail: impl Into<String>) -> CheckFinding {
    CheckFinding { what: what.to_owned(), outcome, detail: detail.into() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use scitt::{Algorithm, Signer, SigningKey};
    use serde_json::json;

    use super::*;

    fn verdict(signer: &SigningKey) -> Value {
        let mut verdict = json!({
            "vap": "0.1", "type": "verdict", "session_id": "s", "in_response_to": "intent_call",
            "verdict": "denied", "verification": { "checks": ["scope_failed"], "method": "static", "reason": "scope_escape" },
        });
        let header =
            json!({ "alg": "EdDSA", "kid": signer.public_key().jwk_thumbprint(), "iat": 1, "jti": "j" });
        let input = jose::jws::signing_input(&header, &jcs::canonical(&verdict));
        verdict["signature"] = jose::jws::detached(&input, &signer.sign(&input).unwrap()).into();
        verdict
    }

    fn outcome(proof: &Proof, what: &str) -> CheckOutcome {
        proof.checks.iter().find(|check| check.what == what).unwrap().outcome
    }

    #[test]
    fn a_verdict_is_found_wherever_a_client_keeps_it() {
        let inner = json!({ "type": "verdict", "verdict": "served" });
        for text in [
            inner.clone(),
            json!({ "_meta": { "vap": inner } }),
            json!({ "result": { "_meta": { "vap": { "verdict": inner } } } }),
            json!({ "result": { "_meta": { "dev.tabellion/vap": inner } } }),
            json!({ "error": { "data": { "vap": inner } } }),
        ] {
            assert_eq!(find(&text.to_string()), Some(inner.clone()), "{text}");
            let events = format!("id: 1\ndata:\n\nevent: message\ndata: {text}\n\n");
            assert_eq!(find(&events), Some(inner.clone()), "{events}");
        }
        assert_eq!(find("{\"result\":{}}"), None);
    }

    #[test]
    fn a_changed_verdict_and_a_foreign_key_are_told_apart() {
        let [signer, other] = [0, 1].map(|_| SigningKey::generate(Algorithm::EdDsa).unwrap());
        let jwks = |key: &SigningKey| key.public_key().to_jwk().to_value().to_string();
        let (ours, theirs) = (jwks(&signer), jwks(&other));
        let given = |jwks| VerdictInputs { jwks, ..VerdictInputs::default() };
        let good = verdict(&signer);
        assert_eq!(
            outcome(&prove(good.clone(), given(Some(ours.as_bytes()))), "signature"),
            CheckOutcome::Ok
        );
        assert_eq!(
            outcome(&prove(good.clone(), given(Some(theirs.as_bytes()))), "signature"),
            CheckOutcome::NotChecked
        );
        assert_eq!(outcome(&prove(good.clone(), given(None)), "signature"), CheckOutcome::NotChecked);
        let mut changed = good;
        changed["verdict"] = "served".into();
        assert_eq!(outcome(&prove(changed, given(Some(ours.as_bytes()))), "signature"), CheckOutcome::Failed);
    }

    #[test]
    fn an_unsigned_verdict_is_no_gateway_s() {
        let signer = SigningKey::generate(Algorithm::EdDsa).unwrap();
        let mut bare = verdict(&signer);
        bare.as_object_mut().unwrap().remove("signature");
        assert_eq!(outcome(&prove(bare, VerdictInputs::default()), "signature"), CheckOutcome::Failed);
        let nonsense = prove(json!({ "type": "verdict" }), VerdictInputs::default());
        assert_eq!(outcome(&nonsense, "form"), CheckOutcome::Failed);
    }
}
