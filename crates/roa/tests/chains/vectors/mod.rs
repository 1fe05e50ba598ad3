//! `vectors/agentroa`: chains, proofs, calls and registries with the decision about each, for any implementation.
//!
//! The files are the contract. `vectors/sources/agentroa` describes how they are made; after a change there, write them
//! again with `WRITE_VECTORS=1 cargo test -p roa --test chains vectors::`.

mod chains;
mod proofs;
mod uses;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use roa::denial::Denial;
use roa::registry::{OAuthClient, Presenter, Registry, RegistryDocument};
use roa::signed::Signed;
use roa::text::AgentId;
use scitt::{PublicKey, Signer};
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::vectors::DocumentEdit;

use crate::world::*;

/// A vector that was made from its source and decided: the name of its file, and its content.
type Made = (String, Value);

fn edited(mut members: Value, edits: &[DocumentEdit]) -> Value {
    edits.iter().for_each(|edit| edit.apply(&mut members, &digest_named));
    members
}

/// Returns the digest that a source names: `key:NAME` is the thumbprint of a key, and any other name is a text.
fn digest_named(name: &str) -> String {
    match name.strip_prefix("key:") {
        Some(name) => key(name).public_key().jwk_thumbprint(),
        None => policy_digest(name),
    }
}

fn registry_edited(edits: &[DocumentEdit]) -> Value {
    signed_value(edited(registry_members(), edits), &["operator"])
}

fn operator() -> Value {
    key("operator").public_key().to_jwk().to_value()
}

/// Opens a registry of a vector.
fn open(registry: &Value, operator: &Value) -> Registry {
    let registry = Signed::<RegistryDocument>::parse(registry.to_string().as_bytes()).unwrap();
    let operator = PublicKey::from_jwk_json(operator.to_string().as_bytes()).unwrap();
    Registry::open(&registry, &[operator]).unwrap()
}

/// Returns the `presenter` of a vector: `holder`, `none`, an agent that proves its key, or `oauth:CLIENT`.
fn presenter_named(name: &str, objects: &[Value]) -> Value {
    match name {
        "holder" => {
            let last = objects.last().unwrap();
            let agent = [&last["delegated_agent"]["agent_id"], &last["session"]["agent_id"]];
            json!({ "agent_id": agent.into_iter().find(|agent| agent.is_string()) })
        }
        "none" => Value::Null,
        other => match other.strip_prefix("oauth:") {
            Some(client) => json!({ "issuer": "https://login.example", "client_id": client }),
            None => json!({ "agent_id": other }),
        },
    }
}

fn presenter(value: &Value) -> Option<Presenter> {
    let agent = value["agent_id"].as_str().map(|agent| AgentId::try_from(agent.to_owned()).unwrap());
    match (value, agent) {
        (Value::Null, _) => None,
        (_, Some(agent)) => Some(Presenter::Proof(agent)),
        (client, None) => Some(Presenter::OAuthClient(OAuthClient::deserialize(client).unwrap())),
    }
}

/// Returns the decision that a source describes: `permit`, or reason, code, hop and dimension, `-` for none.
fn expected(text: &str) -> Value {
    if text == "permit" {
        return json!({ "outcome": "permit" });
    }
    let words: Vec<&str> = text.split(' ').collect();
    let [reason, code, hop, dimension] = words[..] else { panic!("{text}: four words") };
    let present = |word: &str| (word != "-").then(|| word.to_owned());
    json!({
        "outcome": "deny", "reason": reason, "code": code,
        "hop": present(hop).map(|hop| hop.parse::<u64>().unwrap()), "dimension": present(dimension),
    })
}

fn decision(decided: &Result<(), Denial>) -> Value {
    match decided {
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

fn made_from(source: &Path, rule: &str) -> Vec<Made> {
    match rule {
        "proof" => proofs::made_from(source),
        "use" => uses::made_from(source),
        "version" => versions::made_from(source),
        _ => chains::made_from(source),
    }
}

#[test]
fn the_files_are_those_the_sources_describe_and_are_decided_as_they_say() {
    let mut made = BTreeMap::new();
    for source in testkit::vectors::entries(&testkit::vectors::root().join("sources/agentroa")) {
        let rule = testkit::vectors::stem(&source);
        for (name, vector) in made_from(&source, &rule) {
            let path = folder().join(&rule).join(format!("{name}.json"));
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

fn vectors() -> Vec<Value> {
    let rules = testkit::vectors::entries(&folder());
    let files = rules.iter().flat_map(|rule| testkit::vectors::entries(rule));
    files.map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()).collect()
}

/// Returns the decisions of a vector: one, or one for each call or step.
fn decisions(vector: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["calls", "steps"].into_iter().filter_map(|name| vector[name].as_array());
    std::iter::once(vector).chain(lists.flatten()).map(|item| &item["expected"])
}

fn readings(vector: &Value) -> impl Iterator<Item = &str> {
    vector["reading"].as_str().unwrap().split(", ")
}

#[test]
fn every_reading_of_a_chain_has_a_vector_that_denies() {
    let vectors = vectors();
    let is_negative = |decision: &Value| decision["outcome"] == "deny" || decision["outcome"] == "refuse";
    let denied = vectors.iter().filter(|vector| decisions(vector).any(is_negative));
    let shown: BTreeSet<&str> = denied.flat_map(readings).collect();
    for reading in [
        1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14, 16, 17, 19, 20, 22, 23, 30, 36, 38, 39, 40, 41, 42, 43, 44,
        45, 46,
    ] {
        assert!(shown.contains(format!("R-{reading}").as_str()), "R-{reading}");
    }
}

/// Returns whether a vector, or one of its calls, has an answer of the draft's algorithm that is not ours.
fn differs_from_the_draft(vector: &Value) -> bool {
    let calls = vector["calls"].as_array().into_iter().flatten();
    let mut items = std::iter::once(vector).chain(calls);
    items.any(|item| {
        let ours = &item["expected"];
        item["draft"].as_str().is_some_and(|draft| draft != ours["outcome"] && draft != ours["reason"])
    })
}

/// R-15 permits what the draft's algorithm permits, and the algorithm says nothing about registries.
#[test]
fn every_difference_from_the_drafts_algorithm_has_a_vector() {
    let vectors = vectors();
    let shown: BTreeSet<&str> =
        vectors.iter().filter(|vector| differs_from_the_draft(vector)).flat_map(readings).collect();
    for reading in [1, 2, 4, 5, 6, 10, 11, 12, 14, 16, 17, 19, 20, 30, 38, 39, 40, 41, 42, 43, 44, 45] {
        assert!(shown.contains(format!("R-{reading}").as_str()), "R-{reading}");
    }
}
