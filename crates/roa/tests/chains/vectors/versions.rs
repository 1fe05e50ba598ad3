//! Vectors of registries: documents and deltas in the order in which a gateway reads them.

use std::path::Path;

use roa::registry::{DeltaList, Registry, RegistryDocument, RegistryError};
use roa::signed::Signed;
use scitt::PublicKey;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::vectors::{ByteEdit, DocumentEdit};

use super::{Made, edited, operator};
use crate::registries;
use crate::world::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    case: Vec<Case>,
}

/// A case: what a gateway reads, in order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    reading: String,
    why: String,
    step: Vec<Step>,
}

/// A step: a whole registry, or a list of deltas.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Edits of the registry.
    registry: Option<Vec<DocumentEdit>>,
    #[serde(default = "operators")]
    signers: Vec<String>,
    deltas: Option<Vec<Delta>>,
    /// Edits of the text.
    #[serde(default)]
    text: Vec<ByteEdit>,
    /// `accept EPOCH.SEQUENCE REVOCATIONS`, or the error.
    expected: String,
}

/// A delta that revokes one envelope.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delta {
    #[serde(default = "first_epoch")]
    epoch: u64,
    from: u64,
    to: u64,
    #[serde(default)]
    edit: Vec<DocumentEdit>,
    #[serde(default = "operators")]
    signers: Vec<String>,
}

fn operators() -> Vec<String> {
    vec!["operator".to_owned()]
}

fn first_epoch() -> u64 {
    1
}

fn signed_by(members: Value, signers: &[String]) -> Value {
    signed_value(members, &signers.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Step {
    /// Returns the step, without what comes of it.
    fn vector(&self) -> Value {
        let (member, document) = match (&self.registry, &self.deltas) {
            (Some(edits), None) => ("registry", signed_by(edited(registry_members(), edits), &self.signers)),
            (None, Some(deltas)) => ("deltas", deltas.iter().map(Delta::document).collect()),
            _ => panic!("a step has a registry or deltas"),
        };
        let text = jose::jcs::canonical(&document);
        let text = self.text.iter().fold(text, |text, edit| edit.apply(text));
        json!({ member: String::from_utf8(text).unwrap() })
    }
}

impl Delta {
    fn document(&self) -> Value {
        let members = registries::delta(self.epoch, self.from, self.to);
        signed_by(edited(members, &self.edit), &self.signers)
    }
}

/// Reads the text of a step when a registry is in force, or none is.
fn read(step: &Value, operator: &PublicKey, current: Option<&Registry>) -> Result<Registry, &'static str> {
    let operators = [operator.clone()];
    let read = match (step["registry"].as_str(), step["deltas"].as_str(), current) {
        (Some(text), None, current) => {
            let document = Signed::<RegistryDocument>::parse(text.as_bytes()).map_err(|_| "malformed")?;
            match current {
                None => Registry::open(&document, &operators),
                Some(current) => current.replaced_by(&document, &operators),
            }
        }
        (None, Some(text), Some(current)) => {
            let deltas = DeltaList::parse(text.as_bytes()).map_err(|_| "malformed")?;
            current.extended_by(&deltas, &operators)
        }
        _ => panic!("{step}: a registry, or deltas to the one in force"),
    };
    read.map_err(code)
}

fn code(error: RegistryError) -> &'static str {
    match error {
        RegistryError::Signature => "signature",
        RegistryError::OtherRegistry { .. } => "other_registry",
        RegistryError::Rollback { .. } => "rollback",
        RegistryError::MissingRevocation { .. } => "missing_revocation",
        RegistryError::Gap { .. } => "gap",
    }
}

/// Returns what comes of each step of a vector. A refused step leaves the registry in force as it was.
fn outcomes(vector: &Value) -> Vec<Value> {
    let operator = PublicKey::from_jwk_json(vector["operator"].to_string().as_bytes()).unwrap();
    let mut current = None;
    let outcome = |step: &Value| match read(step, &operator, current.as_ref()) {
        Err(error) => json!({ "outcome": "refuse", "error": error }),
        Ok(registry) => {
            let document = current.insert(registry).document();
            let revoked: Vec<_> = document.revocations.iter().map(|entry| &entry.subject).collect();
            json!({
                "outcome": "accept", "epoch": document.epoch, "sequence": document.sequence, "revoked": revoked,
            })
        }
    };
    vector["steps"].as_array().unwrap().iter().map(outcome).collect()
}

/// Returns an outcome in the words of the source.
fn summary(outcome: &Value) -> String {
    match outcome["error"].as_str() {
        Some(error) => error.to_owned(),
        None => {
            let revoked = outcome["revoked"].as_array().unwrap().len();
            format!("accept {}.{} {revoked}", outcome["epoch"], outcome["sequence"])
        }
    }
}

pub fn made_from(source: &Path) -> Vec<Made> {
    let cases = testkit::vectors::read::<Source>(source).case;
    cases.into_iter().map(|case| (case.name.clone(), decided(&case))).collect()
}

fn decided(case: &Case) -> Value {
    let steps: Vec<Value> = case.step.iter().map(Step::vector).collect();
    let mut vector = json!({
        "name": case.name, "reading": case.reading, "why": case.why, "operator": operator(), "steps": steps,
    });
    for (number, outcome) in outcomes(&vector).into_iter().enumerate() {
        assert_eq!(summary(&outcome), case.step[number].expected, "{}: step {number}", case.name);
        vector["steps"][number]["expected"] = outcome;
    }
    vector
}
