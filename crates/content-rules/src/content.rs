//! Check of a statement against the rules of its content type, such as VRF or conversation records.

use registration::{ContentCheck, check_content};
use scitt::SignedStatement;
use verifier::{Check, CheckName, CheckState, Code};

/// Checks a statement whose content type has rules. A broken rule is a failure. Content that was not shown is listed and
/// changes no verdict, because the log's policy may have checked it.
pub fn check(statement: &SignedStatement, payload: Option<&[u8]>) -> Option<Check> {
    let (state, code, detail) = match check_content(statement, payload) {
        Ok(ContentCheck::NoRules) => return None,
        Ok(ContentCheck::Complete) => {
            (CheckState::Ok, None, "header and content keep the rules of the content type".to_owned())
        }
        Ok(ContentCheck::HeaderOnly) => {
            let detail = "the header keeps the rules; the content, of which there is a hash, was not given";
            (CheckState::NotDone, Some(Code::ContentMissing), detail.to_owned())
        }
        Ok(ContentCheck::PayloadMissing) => {
            let detail = "the payload is detached and was not given";
            (CheckState::NotDone, Some(Code::ContentMissing), detail.to_owned())
        }
        Err(violation) => (CheckState::Failed, Some(Code::ContentRuleBroken), violation.to_string()),
    };
    Some(Check { name: CheckName::ContentRules, receipt: None, state, code, detail })
}
