//! Check of a statement against the rules of its content type, such as VRF or conversation records.
//!
//! Not here: the signatures within an execution receipt, for which the gateway's keys are needed (`inner_signatures`), and
//! the rules about the rest of the log (`tabellion vrf chain`).

use registration::{ContentCheck, check_content};
use scitt::SignedStatement;
use verifier::{Check, CheckName, CheckState, Code, StatementEvidence, StatementVerdict};

/// Adds the check to the verdict on a statement whose content type has rules. A broken rule fails the verdict. Content
/// that was not shown is listed and does not change the verdict, because the log's policy may have checked it.
pub fn check(verdict: &mut StatementVerdict, evidence: &StatementEvidence<'_>) {
    let Ok(statement) = SignedStatement::parse(evidence.statement.to_vec()) else { return };
    let (state, code, detail) = match check_content(&statement, evidence.payload) {
        Ok(ContentCheck::NoRules) => return,
        Ok(ContentCheck::Complete) => {
            (CheckState::Ok, None, "header and content keep the rules of the content type".to_owned())
        }
        Ok(ContentCheck::HeaderOnly) => {
            let detail =
                "the header keeps the rules, and the content is a hash: name the content with --payload";
            (CheckState::NotDone, Some(Code::ContentMissing), detail.to_owned())
        }
        Ok(ContentCheck::PayloadMissing) => {
            let detail = "the payload is detached: name it with --payload";
            (CheckState::NotDone, Some(Code::ContentMissing), detail.to_owned())
        }
        Err(violation) => (CheckState::Failed, Some(Code::ContentRuleBroken), violation.to_string()),
    };
    verdict.add(Check { name: CheckName::ContentRules, receipt: None, state, code, detail });
}
