//! How each vector is made: rule by rule, first what keeps it, then what breaks it.

mod payload;
mod receipt;
mod signatures;

use registration::aer::AerRule;
use scitt::Signer;
use serde_json::{Value, json};
use testkit::{GATEWAY, GATEWAY_ID, NOW, aer_json, gateway};

use crate::Case;
use crate::draft::Draft;

/// Every case.
pub fn all() -> Vec<Case> {
    [
        payload::json(),
        payload::members(),
        receipt::identity(),
        receipt::decision(),
        receipt::degraded(),
        receipt::action(),
        receipt::rootless(),
        signatures::form(),
        signatures::whose(),
        signatures::statement(),
    ]
    .concat()
}

/// The policy's table: one gateway, with one key.
fn options() -> Value {
    json!({ "gateway": [{ "iss": GATEWAY, "id": GATEWAY_ID, "keys": [gateway().public_key().did_key()] }] })
}

fn options_with(name: &str, value: Value) -> Value {
    let mut options = options();
    options[name] = value;
    options
}

fn keeps(rule: AerRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case {
        rule,
        name,
        why,
        keeps: true,
        statement: draft.sign(),
        options: options(),
        log: Vec::new(),
        at: NOW,
    }
}

fn breaks(rule: AerRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case { keeps: false, ..keeps(rule, name, why, draft) }
}

impl Case {
    fn under(self, options: Value) -> Case {
        Case { options, ..self }
    }

    fn after(self, draft: Draft) -> Case {
        Case { log: vec![draft.sign()], ..self }
    }

    fn at(self, at: u64) -> Case {
        Case { at, ..self }
    }
}

/// The permit, with one member of the top level set.
fn set(name: &'static str, value: Value) -> Draft {
    Draft::changed(|receipt| receipt[name] = value)
}

/// The permit, with one member of an inner object set.
fn set_in(object: &'static str, name: &'static str, value: Value) -> Draft {
    Draft::changed(|receipt| receipt[object][name] = value)
}

fn remove(name: &'static str) -> Draft {
    Draft::changed(|receipt| drop(receipt.as_object_mut().unwrap().remove(name)))
}

fn remove_from(object: &'static str, name: &'static str) -> Draft {
    Draft::changed(|receipt| drop(receipt[object].as_object_mut().unwrap().remove(name)))
}

fn plain() -> Draft {
    Draft::of(aer_json(0))
}
