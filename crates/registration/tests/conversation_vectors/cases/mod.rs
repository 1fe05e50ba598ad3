//! How each vector is made: rule by rule, first what keeps it, then what breaks it.

mod payload;
mod soundness;
mod structure;
mod trace;

use registration::conversation::ConversationRule;
use serde_json::{Value, json};

use crate::Case;
use crate::draft::Draft;

/// Every case.
pub fn all() -> Vec<Case> {
    let payload = [payload::forms(), payload::strictness(), payload::numbers(), payload::bounds()];
    let structure =
        [structure::members(), structure::entries(), structure::times(), structure::closed_maps()];
    let rest = [trace::cases(), soundness::cases()];
    [payload.concat(), structure.concat(), rest.concat()].concat()
}

fn keeps(rule: ConversationRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case { rule, name, why, keeps: true, statement: draft.sign(), options: json!({}) }
}

fn breaks(rule: ConversationRule, name: &'static str, why: &'static str, draft: Draft) -> Case {
    Case { keeps: false, ..keeps(rule, name, why, draft) }
}

impl Case {
    fn under(self, options: Value) -> Case {
        Case { options, ..self }
    }
}
