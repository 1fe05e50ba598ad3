//! `vectors/agentroa`: chains, registries and calls with the decision about each, for any implementation.
//!
//! The files are the contract. `vectors/sources/agentroa` describes how they are made; after a change there, write them
//! again with `WRITE_VECTORS=1 cargo test -p roa --test chains vectors::`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use roa::attestation::Attestation;
use roa::capability::Capability;
use roa::chain::Chain;
use roa::denial::Denial;
use roa::enforce::{RequestedCall, ToolClasses, enforce};
use roa::registry::{OAuthClient, Presenter, Registry, RegistryDocument};
use roa::signed::Signed;
use roa::text::AgentId;
use roa::verify::verify_chain;
use scitt::{PublicKey, Signer, SigningKey};
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::vectors::{ByteEdit, DocumentEdit};

use crate::world::*;

/// A source: the cases of one rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    case: Vec<Case>,
}

/// A case: edits of the base objects, and a call.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    reading: String,
    why: String,
    /// `permit`, or the denial: reason, code, hop and dimension, in words separated by blanks; `-` for none.
    expected: String,
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
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hop {
    #[serde(default)]
    edit: Vec<DocumentEdit>,
    /// The `signer` of the signature; the holder unless given.
    signer: Option<String>,
    /// The name of the key that signs; that of the signer unless given.
    key: Option<String>,
}

fn authorizer() -> Vec<String> {
    vec!["acme:authorizer:1".to_owned()]
}

fn read_github() -> String {
    "mcp:github.read".to_owned()
}

fn yes() -> bool {
    true
}

fn holder() -> String {
    "holder".to_owned()
}

fn during() -> String {
    "2026-04-08T14:05:00Z".to_owned()
}

fn edited(mut members: Value, edits: &[DocumentEdit]) -> Value {
    edits.iter().for_each(|edit| edit.apply(&mut members, &|text| policy_digest(text)));
    members
}

impl Case {
    fn chain(&self) -> Chain {
        let signers: Vec<&str> = self.signers.iter().map(String::as_str).collect();
        let root = signed(edited(root_members(), &self.root), &signers);
        self.hop.iter().fold(Chain::new(root, Vec::new()), |chain, hop| {
            let members = edited(hop_members(&chain), &hop.edit);
            let signer = hop.signer.as_deref().unwrap_or(AGENTS[chain.hops().len()]);
            let key: SigningKey = key(hop.key.as_deref().unwrap_or(signer));
            let attestation =
                Signed::<Attestation>::sign(&members, &[(signer, &key as &dyn Signer)]).unwrap();
            Chain::new(chain.root().clone(), chain.hops().iter().cloned().chain([attestation]).collect())
        })
    }

    /// Returns the vector, without its expected decision.
    fn vector(&self) -> Value {
        let chain = self.chain();
        let text = self.text.iter().fold(chain.canonical(), |text, edit| edit.apply(text));
        let registry: Signed<RegistryDocument> =
            signed(edited(registry_members(), &self.registry), &["operator"]);
        let last = chain.hops().last().map(|hop| hop.document().delegated_agent.agent_id.to_string());
        let presenter = match self.presenter.as_str() {
            "holder" => json!({ "agent_id": last.unwrap_or_else(|| AGENTS[0].to_owned()) }),
            "none" => Value::Null,
            other => match other.strip_prefix("oauth:") {
                Some(client) => json!({ "issuer": "https://login.example", "client_id": client }),
                None => json!({ "agent_id": other }),
            },
        };
        json!({
            "name": self.name, "reading": self.reading, "why": self.why,
            "registry": serde_json::from_slice::<Value>(registry.canonical()).unwrap(),
            "operator": key("operator").public_key().to_jwk().to_value(),
            "chain": String::from_utf8(text).unwrap(),
            "call": self.call, "pinned": self.pinned, "presenter": presenter, "at": self.at,
        })
    }

    fn expected(&self) -> Value {
        if self.expected == "permit" {
            return json!({ "outcome": "permit" });
        }
        let words: Vec<&str> = self.expected.split(' ').collect();
        let [reason, code, hop, dimension] = words[..] else { panic!("{}: four words", self.name) };
        let present = |word: &str| (word != "-").then(|| word.to_owned());
        json!({
            "outcome": "deny", "reason": reason, "code": code,
            "hop": present(hop).map(|hop| hop.parse::<u64>().unwrap()), "dimension": present(dimension),
        })
    }
}

/// Decides about a vector, as any implementation would.
fn decide(vector: &Value) -> Result<(), Denial> {
    let text = |name: &str| vector[name].as_str().unwrap().to_owned();
    let registry = Signed::<RegistryDocument>::parse(vector["registry"].to_string().as_bytes()).unwrap();
    let operator = PublicKey::from_jwk_json(vector["operator"].to_string().as_bytes()).unwrap();
    let registry = Registry::open(&registry, &[operator]).unwrap();
    let chain = Chain::parse(text("chain").as_bytes())?;
    let verified = verify_chain(&chain, &registry, BOUNDS, time(&text("at")))?;
    let presenter = match &vector["presenter"] {
        Value::Null => None,
        presenter => Some(match presenter["agent_id"].as_str() {
            Some(agent) => Presenter::Proof(AgentId::try_from(agent.to_owned()).unwrap()),
            None => Presenter::OAuthClient(OAuthClient::deserialize(presenter).unwrap()),
        }),
    };
    let capability: Capability = text("call").parse().unwrap();
    let call = RequestedCall {
        capability: &capability,
        is_pinned: vector["pinned"].as_bool().unwrap(),
        presenter: presenter.as_ref(),
        tool: &ToolClasses::default(),
    };
    enforce(&verified, call, &registry)
}

fn decision(vector: &Value) -> Value {
    match decide(vector) {
        Ok(()) => json!({ "outcome": "permit" }),
        Err(denial) => json!({
            "outcome": "deny", "reason": denial.reason.as_str(), "code": denial.code,
            "hop": denial.hop, "dimension": denial.dimension.map(|dimension| dimension.as_str()),
        }),
    }
}

fn folder() -> PathBuf {
    testkit::vectors::root().join("agentroa")
}

#[test]
fn the_files_are_those_the_sources_describe_and_are_decided_as_they_say() {
    let mut made = BTreeMap::new();
    for source in testkit::vectors::entries(&testkit::vectors::root().join("sources/agentroa")) {
        let rule = testkit::vectors::stem(&source);
        for case in testkit::vectors::read::<Source>(&source).case {
            let mut vector = case.vector();
            assert_eq!(decision(&vector), case.expected(), "{rule}/{}", case.name);
            vector["expected"] = case.expected();
            let path = folder().join(&rule).join(format!("{}.json", case.name));
            testkit::vectors::insert(&mut made, path, &vector);
        }
    }
    let present: Vec<PathBuf> = match folder().exists() {
        true => testkit::vectors::entries(&folder())
            .iter()
            .flat_map(|rule| testkit::vectors::entries(rule))
            .collect(),
        false => Vec::new(),
    };
    testkit::vectors::compare(&present, &made);
}

#[test]
fn every_reading_of_a_chain_has_a_vector_that_denies() {
    let files =
        testkit::vectors::entries(&folder()).into_iter().flat_map(|rule| testkit::vectors::entries(&rule));
    let vectors: Vec<Value> =
        files.map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()).collect();
    let denied = vectors.iter().filter(|vector| vector["expected"]["outcome"] == "deny");
    let shown: BTreeSet<&str> =
        denied.flat_map(|vector| vector["reading"].as_str().unwrap().split(", ")).collect();
    for reading in [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14, 16, 19, 20, 22, 23, 30, 36, 40, 41, 42, 44, 45] {
        assert!(shown.contains(format!("R-{reading}").as_str()), "R-{reading}");
    }
}
