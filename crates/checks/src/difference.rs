//! Differences between two receipts of the same checks, to find out whether a receipt is reproducible.
//!
//! Left out is what differs from run to run: `receipt_id`, `verified_at` and elapsed times.

use std::collections::BTreeSet;

use jose::json::pointer_step;
use serde_json::Value;

/// Members that differ from run to run, at any place of a receipt.
const OF_ONE_RUN: [&str; 4] = ["receipt_id", "verified_at", "execution_ms", "elapsed_ms"];

/// A place at which two receipts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptDifference {
    /// JSON pointer into the receipts.
    pub pointer: String,
    /// The value in the first receipt; `None` if it is absent.
    pub first: Option<Value>,
    /// The value in the second receipt; `None` if it is absent.
    pub second: Option<Value>,
}

/// Returns all places at which two receipts differ, apart from what differs from run to run.
#[must_use]
pub fn differences(first: &Value, second: &Value) -> Vec<ReceiptDifference> {
    let mut found = Vec::new();
    collect(Some(first), Some(second), String::new(), &mut found);
    found
}

fn collect(
    first: Option<&Value>,
    second: Option<&Value>,
    pointer: String,
    found: &mut Vec<ReceiptDifference>,
) {
    match (first, second) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names.into_iter().filter(|name| !OF_ONE_RUN.contains(&name.as_str())) {
                collect(a.get(name), b.get(name), format!("{pointer}/{}", pointer_step(name)), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                collect(a.get(index), b.get(index), format!("{pointer}/{index}"), found);
            }
        }
        (first, second) if first == second => {}
        (first, second) => {
            found.push(ReceiptDifference { pointer, first: first.cloned(), second: second.cloned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_identifiers_do_not_count_and_everything_else_is_named() {
        let first = json!({"receipt_id": "a", "results": {"details": [{"elapsed_ms": 1, "status": "pass"}]}});
        let second =
            json!({"receipt_id": "b", "results": {"details": [{"elapsed_ms": 2, "status": "fail"}]}});
        let found = differences(&first, &second);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pointer, "/results/details/0/status");
        assert_eq!(differences(&json!({"a": 1}), &json!({}))[0].second, None);
        assert_eq!(differences(&first, &first), []);
    }
}
