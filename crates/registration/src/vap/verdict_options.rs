//! Policy options for wire Verdicts, `[type.vap_verdict]`, and the check of their signature.

use jose::members::quote;
use scitt::SignatureError;
use serde_json::{Value, json};
use vap::verdict::{ReceivedVerdict, VerdictRule};

use crate::bound_key::{BoundKey, bound_key, key_document};
use crate::demands::PermitDemands;
use crate::section::{Notebook, Section, name, switch, unique};
use crate::violation::Violation;

/// Policy options for wire Verdicts. The default lists no verifier, so that no signed Verdict is admitted.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictOptions {
    /// True to refuse a Verdict without a signature.
    pub require_signature: bool,
    /// The verifiers whose signatures are accepted.
    pub verifiers: Vec<Verifier>,
}

/// A verifier with the keys that sign its Verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Verifier {
    /// The name of the verifier in the policy.
    pub id: String,
    /// The verifier's keys. A signature names one by its kid, or by its RFC 7638 thumbprint.
    pub keys: Vec<BoundKey>,
}

impl Default for VerdictOptions {
    fn default() -> Self {
        VerdictOptions { require_signature: true, verifiers: Vec::new() }
    }
}

impl VerdictOptions {
    /// Parses the policy's table `[type.vap_verdict]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let notes = section.notes();
        let at = section.path("verifier");
        let verifiers = section.list("verifier", |value, at| verifier(value, at, notes));
        unique(&at, verifiers.iter().map(|verifier| verifier.id.clone()), "id", notes);
        VerdictOptions {
            require_signature: section.optional("require_signature", switch).unwrap_or(true),
            verifiers,
        }
    }

    /// Serializes the table with every option.
    pub(crate) fn document(&self) -> Value {
        let verifier = |verifier: &Verifier| json!({ "id": verifier.id, "keys": verifier.keys.iter().map(key_document).collect::<Vec<_>>() });
        json!({
            "require_signature": self.require_signature,
            "verifier": self.verifiers.iter().map(verifier).collect::<Vec<_>>(),
        })
    }
}

fn verifier(value: &Value, at: &str, notes: &Notebook) -> Option<Verifier> {
    let mut section = Section::open(value, at, notes)?;
    let id = section.required("id", name);
    let keys = section.list("keys", |value, at| bound_key(value, at, notes));
    if section.is_empty_list("keys") {
        section.note("keys", "a verifier needs a key");
    }
    section.close();
    Some(Verifier { id: id?, keys })
}

/// Verifies the signature with a key that the policy lists, and returns the verifier's name as a fact.
pub(crate) fn check(options: &VerdictOptions, record: &ReceivedVerdict) -> Result<PermitDemands, Violation> {
    let Some(signature) = &record.signature else {
        return match options.require_signature {
            false => Ok(PermitDemands::default()),
            true => {
                let detail = "the policy takes signed verdicts only";
                Err(violation(VerdictRule::SignatureRequired, detail))
            }
        };
    };
    let kid = signature.kid();
    let named = |bound: &BoundKey| bound.kid == kid.as_bytes() || bound.key.jwk_thumbprint() == kid;
    let keys =
        options.verifiers.iter().flat_map(|verifier| verifier.keys.iter().map(move |key| (verifier, key)));
    let mut failed: Option<SignatureError> = None;
    for (verifier, bound) in keys.filter(|(_, bound)| named(bound)) {
        match bound.key.verify_jws(signature) {
            Ok(()) => {
                return Ok(PermitDemands::fact("verifier", verifier.id.clone().into()));
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(match failed {
        Some(error) => violation(VerdictRule::Signature, error.to_string()),
        None => {
            let detail = format!("the policy lists no verifier with the key {}", quote(kid));
            violation(VerdictRule::SignatureKey, detail)
        }
    })
}

/// Returns a violation in the signature.
fn violation(rule: VerdictRule, detail: impl Into<String>) -> Violation {
    crate::rule::in_payload(rule.name(), "/signature".to_owned(), detail.into())
}
