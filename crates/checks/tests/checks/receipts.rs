//! Every receipt keeps every rule of `registration::vrf`.

use checks::{Stamp, receipt};
use proptest::prelude::*;
use registration::vrf::Receipt;
use sandbox::Ending;
use serde_json::{Value, json};

use crate::fake::{Fake, ended, function, request, returned, run_checks, wrote};

fn stamp() -> Stamp {
    Stamp {
        receipt_id: "11111111-1111-4111-8111-111111111111".into(),
        verified_at: "2026-01-01T00:00:00Z".into(),
        verifier: "v/1".into(),
    }
}

/// Parses a receipt as a log would.
fn admitted(receipt: &Value) -> Receipt {
    Receipt::read(receipt).unwrap_or_else(|violation| panic!("{violation}: {receipt}"))
}

#[test]
fn a_receipt_says_what_was_checked_with_what() {
    let value = json!({
        "tier": 0,
        "task": { "task_id": "7", "task_type": "code_generation" },
        "subject": "did:web:agent.example",
        "specification": "sort",
        "artifact": { "language": "python", "content": "…" },
        "tests": [{ "name": "a", "expected": 1 }],
        "limits": { "fuel": 5 },
    });
    let request = request(&value);
    let report = run_checks(&request, &Fake::new(|_| returned("1"))).unwrap();
    let receipt = receipt(&request, &report, stamp());
    let read = admitted(&receipt);
    assert_eq!((read.verdict.as_str(), read.tier), ("pass", Some(0)));
    assert_eq!(read.subject.as_deref(), Some("did:web:agent.example"));
    assert_eq!(read.task_id.as_deref(), Some("7"));
    let config = &receipt["metadata"]["sandbox_config"];
    assert_eq!((&config["engine"], &config["limits"]["fuel"]), (&json!("fake"), &json!(5)));
    assert_eq!((&receipt["metadata"]["sandbox"], &config["fuel_used"]), (&json!("subprocess"), &json!(10)));
    assert!(receipt["hashes"]["specification"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn models_of_solvers_are_among_the_hashes() {
    let value = json!({
        "tier": 3,
        "artifact": { "content": "x" },
        "obligation": { "logic": "QF_LIA", "smtlib": "(check-sat)" },
    });
    let request = request(&value);
    let report = run_checks(&request, &Fake::new(|_| wrote("sat\n()\n"))).unwrap();
    let receipt = receipt(&request, &report, stamp());
    admitted(&receipt);
    assert!(receipt["hashes"]["model_z3"].is_string() && receipt["hashes"]["model_cvc5"].is_string());
}

proptest! {
    #[test]
    fn any_outcomes_make_a_receipt_that_a_log_admits(endings in prop::collection::vec((0_u8..9, ".{0,40}"), 1..12)) {
        let tests: Vec<Value> =
            (0..endings.len()).map(|index| json!({ "name": index.to_string(), "arguments": [index], "expected": "x" })).collect();
        let request = request(&json!({
            "tier": 0, "artifact": { "language": "javascript", "content": "" }, "tests": tests,
        }));
        let runner = Fake::new(|call| {
            let index = usize::try_from(function(call).1[0].as_u64().unwrap()).unwrap();
            let (kind, text) = endings[index].clone();
            match kind {
                0 => ended(Ending::OutOfTime),
                1 => ended(Ending::Threw(text)),
                2 => ended(Ending::Crashed(text)),
                3 => returned(&text),
                4 => returned("\"x\""),
                5 => returned(&json!(text).to_string()),
                6 => checks::JobEnd::Failed(text),
                7 => checks::JobEnd::NotStarted,
                _ => returned("1e400"),
            }
        });
        let report = run_checks(&request, &runner).unwrap();
        let made = receipt(&request, &report, stamp());
        prop_assert!(Receipt::read(&made).is_ok(), "{made}");
        prop_assert!(jose::jcs::is_canonical(&jose::jcs::canonical(&made)));
    }
}
