//! How each vector is made: rule by rule, first what keeps it, then what breaks it.

mod chain;
mod header;
mod payload;
mod receipt;
mod redacted;

use registration::vrf::VrfRule;
use serde_json::{Value, json};
use testkit::{NOW, receipt_json};

use crate::Case;
use crate::draft::{Draft, jose_canonical};

/// Every case.
pub fn all() -> Vec<Case> {
    let payload = [payload::forms(), payload::json()];
    let header = [header::header(), header::chain(), header::identity()];
    let receipt =
        [receipt::tiers(), receipt::counters(), receipt::verdicts(), receipt::formats(), receipt::versions()];
    let log = [chain::chain(), chain::strict(), redacted::redacted(), redacted::disclosed()];
    [payload.concat(), header.concat(), receipt.concat(), log.concat()].concat()
}

fn keeps(rule: VrfRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case {
        rule,
        name,
        why,
        keeps: true,
        statement: draft.sign(),
        options: json!({}),
        log: Vec::new(),
        at: NOW,
        disclosed: None,
    }
}

fn breaks(rule: VrfRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case { keeps: false, ..keeps(rule, name, why, draft) }
}

impl Case {
    fn under(self, options: Value) -> Case {
        Case { options, ..self }
    }

    fn after(self, draft: Draft) -> Case {
        self.in_log([draft.sign()])
    }

    fn in_log(self, log: impl Into<Vec<Vec<u8>>>) -> Case {
        Case { log: log.into(), ..self }
    }

    fn disclosed(self, shown: Vec<u8>) -> Case {
        Case { disclosed: Some(shown), ..self }
    }

    fn at(self, at: u64) -> Case {
        Case { at, ..self }
    }
}

/// The receipt, with one member of the top level set.
fn set(name: &'static str, value: Value) -> Draft {
    Draft::changed(|receipt| receipt[name] = value)
}

/// The receipt, with one member of an inner object set.
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
    Draft::of(&receipt_json(0))
}

/// The `n`th receipt, which the caller puts in its place.
fn numbered(n: u64) -> Draft {
    Draft::of(&receipt_json(n))
}

fn canonical() -> Vec<u8> {
    jose_canonical(&receipt_json(0))
}
