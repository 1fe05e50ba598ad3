//! Check of the trace-metadata of a conversation record (label 100), which is not signed, although readers may rely on
//! it.

use registration::conversation::{TraceMetadata, check_trace_metadata};
use scitt::SignedStatement;
use verifier::{Check, CheckName, CheckState, Code};

/// Checks a statement with trace-metadata. A contradiction is a failure. A check that was impossible is listed and changes
/// no verdict, because nothing signed depends on it.
pub fn check(statement: &SignedStatement, payload: Option<&[u8]>) -> Option<Check> {
    let (state, code, detail) = match check_trace_metadata(statement, payload) {
        Ok(TraceMetadata::Absent) => return None,
        Ok(TraceMetadata::Agrees) => {
            (CheckState::Ok, None, "label 100 is unsigned, and agrees with the record".to_owned())
        }
        Ok(TraceMetadata::NotCompared) => {
            let detail = "label 100 is unsigned, and no conversation record is at hand to compare it with";
            (CheckState::NotDone, Some(Code::TraceMetadataNotCompared), detail.to_owned())
        }
        Err(violation) => (CheckState::Failed, Some(Code::TraceMetadataMismatch), violation.to_string()),
    };
    Some(Check { name: CheckName::TraceMetadata, receipt: None, state, code, detail })
}
