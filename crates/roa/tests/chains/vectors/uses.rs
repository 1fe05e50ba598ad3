//! Vectors of several calls under one envelope, whose uses the gateway remembers.

use std::path::Path;

use decimal::Decimal;
use roa::capability::Capability;
use roa::chain::Chain;
use roa::denial::Denial;
use roa::enforce::{RequestedCall, ToolClasses, enforce};
use roa::registry::Registry;
use roa::usage::{EnvelopeUse, ExpectedCost, Spending};
use roa::verify::verify_chain;
use serde::Deserialize;
use serde_json::{Number, Value, json};
use testkit::vectors::DocumentEdit;

use super::{Made, chains, decision, edited, expected, open, operator, presenter, presenter_named};
use crate::pseudocode;
use crate::world::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    case: Vec<Case>,
}

/// A case: calls in order, under one root envelope.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    reading: String,
    why: String,
    /// Edits of each version of the registry.
    #[serde(default = "one_version")]
    registries: Vec<Vec<DocumentEdit>>,
    /// Edits of the root envelope.
    #[serde(default)]
    root: Vec<DocumentEdit>,
    call: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    /// The version of the registry in force.
    #[serde(default)]
    registry: usize,
    /// The names of the keys that sign the root.
    #[serde(default = "chains::authorizer")]
    signers: Vec<String>,
    /// The delegations below the root.
    #[serde(default)]
    hop: Vec<chains::Hop>,
    #[serde(default = "chains::read_github")]
    tool: String,
    #[serde(default = "chains::holder")]
    presenter: String,
    /// The highest cost expected, in the unit of the chain.
    #[serde(default = "free")]
    cost: Number,
    /// The real cost, which is known before the next call.
    real_cost: Option<Number>,
    #[serde(default = "chains::during")]
    at: String,
    expected: String,
    /// The answer of the draft's VerifyChain followed by its replay cache (section 8.4.2).
    draft: Option<String>,
}

fn one_version() -> Vec<Vec<DocumentEdit>> {
    vec![Vec::new()]
}

fn free() -> Number {
    0.into()
}

fn decimal(number: &Value) -> Decimal {
    Decimal::read(&number.to_string()).unwrap()
}

impl Case {
    fn vector(&self) -> Value {
        let registry = |edits: &Vec<_>| signed_value(edited(registry_members(), edits), &["operator"]);
        json!({
            "name": self.name, "reading": self.reading, "why": self.why,
            "registries": self.registries.iter().map(registry).collect::<Vec<_>>(), "operator": operator(),
            "calls": self.call.iter().map(|call| call.vector(&self.root)).collect::<Vec<_>>(),
        })
    }
}

impl Call {
    /// Returns the call, without its decisions.
    fn vector(&self, root: &[DocumentEdit]) -> Value {
        let objects = chains::objects(root, &self.signers, &self.hop);
        let presenter = presenter_named(&self.presenter, &objects);
        let mut call = json!({
            "registry": self.registry, "chain": String::from_utf8(chains::text(objects)).unwrap(),
            "call": self.tool, "presenter": presenter, "cost": self.cost, "at": self.at,
        });
        if let Some(cost) = &self.real_cost {
            call["real_cost"] = cost.clone().into();
        }
        call
    }
}

/// Decides about a call, and returns the envelope's use after it.
fn decide(
    call: &Value,
    registry: &Registry,
    used: Option<&EnvelopeUse>,
) -> Result<(EnvelopeUse, Spending), Denial> {
    let text = |name: &str| call[name].as_str().unwrap();
    let chain = Chain::parse(text("chain").as_bytes())?;
    let verified = verify_chain(&chain, registry, BOUNDS, time(text("at")))?;
    let mut used = used.cloned().unwrap_or_else(|| EnvelopeUse::begin(&verified, registry));
    used.check_envelope(&verified)?;
    let capability: Capability = text("call").parse().unwrap();
    let presenter = presenter(&call["presenter"]);
    let requested = RequestedCall {
        capability: &capability,
        is_pinned: used.is_pinned(&capability),
        presenter: presenter.as_ref(),
        tool: &ToolClasses::default(),
    };
    enforce(&verified, requested, registry)?;
    used.bind(verified.holder(), &presenter.unwrap(), registry)?;
    let spending = used.reserve(&verified, |_| ExpectedCost::known(decimal(&call["cost"])))?;
    Ok((used, spending))
}

/// Decides about the calls of a vector in order. A denied call leaves the envelope's use as it was.
fn decisions(vector: &Value) -> Vec<Value> {
    let mut used = None;
    let calls = vector["calls"].as_array().unwrap().iter();
    let decide = |call: &Value| {
        let version = usize::try_from(call["registry"].as_u64().unwrap()).unwrap();
        let registry = open(&vector["registries"][version], &vector["operator"]);
        let decided = decide(call, &registry, used.as_ref()).map(|(mut after, spending)| {
            if !call["real_cost"].is_null() {
                after.settle(&spending, decimal(&call["real_cost"]));
            }
            used = Some(after);
        });
        decision(&decided)
    };
    calls.map(decide).collect()
}

/// Returns the draft's answers: its cache denies every pair of envelope and session that it has seen.
fn drafts(vector: &Value) -> Vec<String> {
    let mut has_seen = false;
    let calls = vector["calls"].as_array().unwrap().iter();
    let answer = |call: &Value| {
        let chain: Vec<Value> = serde_json::from_str(call["chain"].as_str().unwrap()).unwrap();
        let now = time(call["at"].as_str().unwrap());
        let answer = pseudocode::answer(&chain, call["call"].as_str().unwrap(), now);
        match answer == "permit" && std::mem::replace(&mut has_seen, true) {
            true => "replay_detected".to_owned(),
            false => answer,
        }
    };
    calls.map(answer).collect()
}

pub fn made_from(source: &Path) -> Vec<Made> {
    let cases = testkit::vectors::read::<Source>(source).case;
    cases.into_iter().map(|case| (case.name.clone(), decided(&case))).collect()
}

fn decided(case: &Case) -> Value {
    let mut vector = case.vector();
    let (decisions, drafts) = (decisions(&vector), drafts(&vector));
    for (number, call) in case.call.iter().enumerate() {
        let context = format!("{}: call {number}", case.name);
        assert_eq!(decisions[number], expected(&call.expected), "{context}");
        vector["calls"][number]["expected"] = decisions[number].clone();
        if let Some(draft) = &call.draft {
            assert_eq!(drafts[number], *draft, "{context}: the draft");
            vector["calls"][number]["draft"] = draft.clone().into();
        }
    }
    vector
}
