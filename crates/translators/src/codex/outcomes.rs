//! What became of calls, as events of Codex state it (`item_completed`). The result that the model was given may not say so.

use std::collections::HashMap;

use serde_json::Value;

use crate::entry::{Entry, TOOL_RESULT};
use crate::lines::Line;

/// Whether calls have failed, by their identifiers.
pub(super) struct Outcomes(HashMap<String, bool>);

impl Outcomes {
    pub fn of(lines: &[Line]) -> Outcomes {
        Outcomes(lines.iter().filter_map(|line| outcome(line.value.get("payload")?)).collect())
    }

    /// Adds to a result that the call has failed or has not, unless the result says so itself.
    pub fn complete(&self, entry: Entry) -> Entry {
        let is_open = entry.kind() == TOOL_RESULT && entry.member("is-error").is_none();
        let outcome = entry.text("call-id").filter(|_| is_open).and_then(|call| self.0.get(call)).copied();
        entry.with("is-error", outcome)
    }
}

fn outcome(event: &Value) -> Option<(String, bool)> {
    let item =
        event.get("item").filter(|_| event.get("type").is_some_and(|kind| kind == "item_completed"))?;
    let has_failed = match item.get("status")?.as_str()? {
        "completed" => false,
        "failed" | "declined" => true,
        _ => return None,
    };
    Some((item.get("id")?.as_str()?.to_owned(), has_failed))
}
