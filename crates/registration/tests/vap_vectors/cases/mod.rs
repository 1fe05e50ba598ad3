//! How the vectors were made.

mod audit;
mod audit_log;
mod erasure;
mod jwk_set;
mod operator;
mod signature;
mod verdict;

use scitt::StatementBuilder;
use serde_json::{Value, json};
use testkit::{GATEWAY, KID, NOW, gateway};

pub use operator::of_two_operators;

use crate::{Case, Rule};

pub fn all() -> Vec<Case> {
    [
        verdict::cases(),
        signature::cases(),
        audit::cases(),
        audit_log::cases(),
        jwk_set::cases(),
        erasure::cases(),
        operator::cases(),
    ]
    .concat()
}

/// A statement that keeps the rule.
fn keeps(rule: impl Into<Rule>, name: &str, why: &str, statement: Vec<u8>) -> Case {
    Case {
        rule: rule.into(),
        name: name.to_owned(),
        why: why.to_owned(),
        keeps: true,
        statement,
        payload: None,
        options: json!({}),
        log: Vec::new(),
        at: NOW,
    }
}

/// A statement that breaks the rule, and no other.
fn breaks(rule: impl Into<Rule>, name: &str, why: &str, statement: Vec<u8>) -> Case {
    Case { keeps: false, ..keeps(rule, name, why, statement) }
}

impl Case {
    fn options(self, options: Value) -> Case {
        Case { options, ..self }
    }

    fn log(self, log: Vec<Vec<u8>>) -> Case {
        Case { log, ..self }
    }

    fn at(self, at: u64) -> Case {
        Case { at, ..self }
    }
}

/// A statement of the gateway with exactly this payload.
fn statement(content_type: &'static str, sub: &str, payload: impl Into<Vec<u8>>) -> Vec<u8> {
    StatementBuilder::new(payload)
        .content_type(content_type)
        .kid(KID)
        .iss(GATEWAY)
        .sub(sub)
        .encode(&gateway())
        .unwrap()
}

fn canonical(value: &Value) -> Vec<u8> {
    jose::jcs::canonical(value)
}

/// A document, changed.
fn changed(mut document: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut document);
    document
}

/// A document without one of its members.
fn without(document: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    changed(document, |document| {
        document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    })
}

/// A document with one member set.
fn with(document: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    changed(document, |document| document.pointer_mut(parent).unwrap()[name] = value)
}

/// JSON text with one piece replaced.
fn text_with(document: &Value, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(canonical(document)).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1).into_bytes()
}
