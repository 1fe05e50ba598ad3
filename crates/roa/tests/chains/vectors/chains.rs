//! Vectors of one call under a chain, with the answer of the draft's algorithm beside it where it differs.

use std::path::Path;

use roa::capability::Capability;
use roa::chain::Chain;
use roa::denial::Denial;
use roa::enforce::{RequestedCall, ToolClasses, enforce};
use roa::verify::verify_chain;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::vectors::{ByteEdit, DocumentEdit};

use super::{Made, decision, edited, expected, open, operator, presenter, presenter_named, registry_edited};
use crate::pseudocode;
use crate::world::*;

/// A source: the cases of one rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    case: Vec<Case>,
}

/// A case: edits of the base objects, and a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    reading: String,
    why: String,
    /// `permit`, or the denial: reason, code, hop and dimension, in words separated by blanks; `-` for none.
    expected: String,
    /// The answer of the draft's algorithm (section 5.3) in its own words.
    draft: Option<String>,
    /// Edits of the registry.
    #[serde(default)]
    registry: Vec<DocumentEdit>,
    /// Edits of the root envelope.
    #[serde(default)]
    root: Vec<DocumentEdit>,
    /// The names of the keys that sign the root.
    #[serde(default = "authorizer")]
    signers: Vec<String>,
    /// The delegations.
    #[serde(default)]
    hop: Vec<Hop>,
    /// Edits of the chain's text.
    #[serde(default)]
    text: Vec<ByteEdit>,
    #[serde(default = "read_github")]
    call: String,
    /// Whether the tool is in the manifest that was pinned when the envelope was first used.
    #[serde(default = "yes")]
    pinned: bool,
    /// `holder`, `none`, an agent that proves its key, or `oauth:CLIENT`.
    #[serde(default = "holder")]
    presenter: String,
    #[serde(default = "during")]
    at: String,
}

/// A delegation: edits of the attestation by the holder.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    #[serde(default)]
    edit: Vec<DocumentEdit>,
    /// The `signer` of the signature; the holder unless given.
    signer: Option<String>,
    /// The name of the key that signs; that of the signer unless given.
    key: Option<String>,
    /// The names of keys that sign besides.
    #[serde(default)]
    also: Vec<String>,
}

pub fn authorizer() -> Vec<String> {
    vec!["acme:authorizer:1".to_owned()]
}

pub fn read_github() -> String {
    "mcp:github.read".to_owned()
}

fn yes() -> bool {
    true
}

pub fn holder() -> String {
    "holder".to_owned()
}

pub fn during() -> String {
    "2026-04-08T14:05:00Z".to_owned()
}

/// Returns the objects of a chain, which may be malformed.
pub fn objects(root: &[DocumentEdit], signers: &[String], hops: &[Hop]) -> Vec<Value> {
    let signers: Vec<&str> = signers.iter().map(String::as_str).collect();
    let mut objects = vec![signed_value(edited(root_members(), root), &signers)];
    for hop in hops {
        let signer = hop.signer.as_deref().unwrap_or(AGENTS[objects.len() - 1]);
        let key = hop.key.as_deref().unwrap_or(signer);
        let members = edited(hop_members_after(&objects), &hop.edit);
        let first = format!("{signer}={key}");
        let signers: Vec<&str> = std::iter::once(&first).chain(&hop.also).map(String::as_str).collect();
        objects.push(signed_value(members, &signers));
    }
    objects
}

pub fn text(objects: Vec<Value>) -> Vec<u8> {
    jose::jcs::canonical(&Value::Array(objects))
}

impl Case {
    /// Returns the vector, without its decisions.
    fn vector(&self) -> Value {
        let objects = objects(&self.root, &self.signers, &self.hop);
        let presenter = presenter_named(&self.presenter, &objects);
        let text = self.text.iter().fold(text(objects), |text, edit| edit.apply(text));
        json!({
            "name": self.name, "reading": self.reading, "why": self.why,
            "registry": registry_edited(&self.registry), "operator": operator(),
            "chain": String::from_utf8(text).unwrap(),
            "call": self.call, "pinned": self.pinned, "presenter": presenter, "at": self.at,
        })
    }
}

/// Decides about a vector, as any implementation would.
fn decide(vector: &Value) -> Result<(), Denial> {
    let text = |name: &str| vector[name].as_str().unwrap().to_owned();
    let registry = open(&vector["registry"], &vector["operator"]);
    let chain = Chain::parse(text("chain").as_bytes())?;
    let verified = verify_chain(&chain, &registry, BOUNDS, time(&text("at")))?;
    let capability: Capability = text("call").parse().unwrap();
    let presenter = presenter(&vector["presenter"]);
    let call = RequestedCall {
        capability: &capability,
        is_pinned: vector["pinned"].as_bool().unwrap(),
        presenter: presenter.as_ref(),
        tool: &ToolClasses::default(),
    };
    enforce(&verified, call, &registry)
}

/// Returns what the draft's algorithm answers to a vector.
fn draft(vector: &Value) -> String {
    let chain: Vec<Value> = serde_json::from_str(vector["chain"].as_str().unwrap()).unwrap();
    pseudocode::answer(&chain, vector["call"].as_str().unwrap(), time(vector["at"].as_str().unwrap()))
}

pub fn made_from(source: &Path) -> Vec<Made> {
    let cases = testkit::vectors::read::<Source>(source).case;
    let made = cases.into_iter().map(|case| {
        let mut vector = case.vector();
        let found = decision(&decide(&vector));
        assert_eq!(found, expected(&case.expected), "{}: {}", source.display(), case.name);
        vector["expected"] = found;
        if let Some(stated) = case.draft {
            assert_eq!(draft(&vector), stated, "{}: {}: the draft", source.display(), case.name);
            vector["draft"] = stated.into();
        }
        (case.name, vector)
    });
    made.collect()
}
