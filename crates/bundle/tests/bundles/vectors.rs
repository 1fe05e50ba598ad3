//! `vectors/bundle`: one file per case, as the cases describe them, and every case gets its answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bundle::EvidenceBundle;
use serde_json::json;
use testkit::NOW;
use testkit::vectors::{compare, entries, insert, root};
use tlog::policy::WitnessPolicy;

use crate::cases::{self, Case, OUTCOMES};

#[test]
fn every_case_gets_its_answer() {
    for case in cases::all() {
        let name = &case.name;
        let Ok(bundle) = EvidenceBundle::parse(case.bundle.as_bytes()) else {
            assert_eq!(case.outcome, "malformed", "{name}");
            continue;
        };
        assert_ne!(case.outcome, "malformed", "{name}: {}", case.why);
        let policy: WitnessPolicy = case.witness_policy.parse().unwrap();
        let verdict = bundle.verify(&case.trust, Some(&policy), NOW);
        let answer = serde_json::to_value(&verdict).unwrap();
        assert_eq!(answer["outcome"], case.outcome, "{name}: {}\n{verdict:#?}", case.why);
        assert_eq!(answer["reason"].as_str(), case.reason.as_deref(), "{name}: {}\n{verdict:#?}", case.why);
        assert_eq!(bundle.to_bytes(), case.bundle.as_bytes(), "{name}: one bundle has one form");
    }
}

/// `WRITE_VECTORS=1` writes the files anew.
#[test]
fn the_vectors_are_what_the_cases_describe() {
    let folder = root().join("bundle");
    let mut made = BTreeMap::new();
    for case in cases::all() {
        let path = folder.join(case.outcome).join(format!("{}.json", case.name));
        insert(&mut made, path, &vector(&case));
    }
    let folders = OUTCOMES.map(|outcome| folder.join(outcome));
    folders.iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
    let present: Vec<PathBuf> = folders.iter().flat_map(|folder| entries(folder)).collect();
    compare(&present, &made);
}

fn vector(case: &Case) -> serde_json::Value {
    json!({
        "why": case.why,
        "bundle": case.bundle,
        "trust": case.trust.to_toml(),
        "witness_policy": case.witness_policy,
        "now": NOW,
        "outcome": case.outcome,
        "reason": case.reason,
    })
}
